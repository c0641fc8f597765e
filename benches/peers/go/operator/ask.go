package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// canWrite asks the page of a sidecar, such as http://127.0.0.1:8002/leader.
func canWrite(page string) bool {
	response, err := (&http.Client{Timeout: time.Second}).Get(page)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var answer struct {
		CanWrite bool `json:"can_write"`
	}
	return json.NewDecoder(response.Body).Decode(&answer) == nil && answer.CanWrite
}

// asker asks each second. When this replica begins to lead, it sends every object to the controller.
type asker struct {
	page     string
	client   client.Client
	canWrite atomic.Bool
	gained   chan event.GenericEvent
}

// Start is what the manager runs.
func (a *asker) Start(ctx context.Context) error {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		now := canWrite(a.page)
		if a.canWrite.Swap(now) || !now {
			continue
		}
		var objects networkingv1.NetworkPolicyList
		if err := a.client.List(ctx, &objects); err != nil {
			return err
		}
		for i := range objects.Items {
			a.gained <- event.GenericEvent{Object: &objects.Items[i]}
		}
	}
	return nil
}
