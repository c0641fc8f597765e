package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// lock is the lock of a manager. This replica holds it while its sidecar leads.
type lock struct{ page string }

func lockBySidecar(options *ctrl.Options, page string) {
	lease, renew, retry := 3*time.Second, 2*time.Second, time.Second
	options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock{page}
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &lease, &renew, &retry
}

// Get shows a free lock if this replica may take it. Otherwise another replica seems to have renewed it just now.
func (l lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if canWrite(l.page) {
		return &resourcelock.LeaderElectionRecord{}, nil, nil
	}
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "another replica"}, []byte(time.Now().String()), nil
}

// Update takes the lock, or renews it.
func (l lock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if canWrite(l.page) {
		return nil
	}
	return errors.New("the sidecar does not lead")
}

// Create is never called, because there always is a lock.
func (l lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l lock) Identity() string   { return "this replica" }
func (l lock) Describe() string   { return l.page }
func (l lock) RecordEvent(string) {}
