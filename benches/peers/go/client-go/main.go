// A candidate with client-go's elector, built like the example that client-go has for it: it writes while it leads, its
// work ends before its lease is released, and the process ends when it no longer leads.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"kube-leader-gate/benches/peers/go/candidate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	args, config := candidate.Parse()
	client := kubernetes.NewForConfigOrDie(config)
	write := func(ctx context.Context, patch []byte) error {
		_, err := client.CoreV1().ConfigMaps(args.Namespace).
			Patch(ctx, args.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}

	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	elect, release := context.WithCancel(context.Background())
	var work sync.Mutex // held by the work
	go func() {
		<-stop.Done()
		work.Lock()
		release()
	}()
	leaderelection.RunOrDie(elect, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: args.Namespace, Name: args.Name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: args.Identity},
		},
		LeaseDuration:   candidate.LeaseDuration,
		RenewDeadline:   candidate.RenewDeadline,
		RetryPeriod:     candidate.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				work.Lock()
				defer work.Unlock()
				ctx, cancel := context.WithCancel(leading)
				defer cancel()
				defer context.AfterFunc(stop, cancel)()
				args.Work(ctx, write)
			},
			OnStoppedLeading: func() { os.Exit(0) },
		},
	})
}
