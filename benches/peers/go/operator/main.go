// An operator with controller-runtime, to run behind a sidecar: it copies a label of each NetworkPolicy's selector into an
// annotation. The sidecar elects. What the operator itself does about that is its WAY:
//
//	(none)   nothing
//	later    a refused write is no error: the object is looked at again after ten seconds
//	backoff  no pause is longer than ten seconds
//	ask      it asks the sidecar each second, does nothing while it may not write, and then looks at every object
//	lock     its manager elects, and the lock is the page of the sidecar
//	elect    its manager elects on a Lease of its own
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Usage: KUBECONFIG=FILE CONTENT_TYPE=TYPE LEADER_PAGE=URL [FILTER=generation] [WAY=WAY] operator NAMESPACE
func main() {
	ctrl.SetLogger(klog.Background())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.ContentType = os.Getenv("CONTENT_TYPE")
	config.QPS, config.Burst = 1000, 1000 // the limit of its own rate is not what is measured
	options := ctrl.Options{
		Cache:                  cache.Options{DefaultNamespaces: map[string]cache.Config{os.Args[1]: {}}},
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	}
	way, page := os.Getenv("WAY"), os.Getenv("LEADER_PAGE")
	switch way {
	case "elect":
		options.LeaderElection = true
		options.LeaderElectionID = "my-app-program" // not the Lease of the sidecar
		options.LeaderElectionNamespace = os.Args[1]
		options.LeaderElectionReleaseOnCancel = true
	case "lock":
		lockBySidecar(&options, page)
	}
	manager, err := ctrl.NewManager(config, options)
	check(err)

	sidecar := &asker{page: page, client: manager.GetClient(), gained: make(chan event.GenericEvent)}
	var work reconcile.Func = func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if way == "ask" && !sidecar.canWrite.Load() {
			return reconcile.Result{}, nil // every object comes again when this replica may write
		}
		object := &networkingv1.NetworkPolicy{}
		if err := manager.GetClient().Get(ctx, request.NamespacedName, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		wanted := object.Spec.PodSelector.MatchLabels["wanted"]
		if object.Annotations["seen"] == wanted {
			return reconcile.Result{}, nil
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"seen":%q}}}`, wanted)
		return reconcile.Result{}, manager.GetClient().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}
	builder := ctrl.NewControllerManagedBy(manager).For(&networkingv1.NetworkPolicy{})
	if os.Getenv("FILTER") == "generation" {
		builder = builder.WithEventFilter(predicate.GenerationChangedPredicate{})
	}
	switch way {
	case "later":
		work = later(work)
	case "ask":
		check(manager.Add(sidecar))
		builder = builder.WatchesRawSource(source.Channel(sidecar.gained, &handler.EnqueueRequestForObject{}))
	case "backoff":
		builder = builder.WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 10*time.Second),
		})
	}
	check(builder.Complete(work))
	check(manager.Start(ctrl.SetupSignalHandler()))
}
