// A candidate with controller-runtime: a manager with one controller, which reconciles one ConfigMap by writing it.
package main

import (
	"context"
	"log"
	"time"

	"kube-leader-gate/benches/peers/go/candidate"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type reconciler struct {
	candidate.Arguments
	client client.Client
	count  int
}

// Reconcile is one write. The API server refuses none of them, so a result without a pause asks for no further one.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = request.Namespace, request.Name
	err := r.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, r.Patch(r.count)))
	r.count++
	return reconcile.Result{RequeueAfter: r.Every}, err
}

func main() {
	args, config := candidate.Parse()
	ctrl.SetLogger(logr.Discard())
	lease, renew, retry := candidate.LeaseDuration, candidate.RenewDeadline, candidate.RetryPeriod
	grace := 10 * time.Second
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:                true,
		LeaderElectionNamespace:       args.Namespace,
		LeaderElectionID:              args.Name,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		GracefulShutdownTimeout:       &grace,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{args.Namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
	})
	if err != nil {
		log.Fatal(err)
	}
	// Its own writes are no reason to write again.
	first := predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return e.Object.GetName() == args.Name },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}, builder.WithPredicates(first)).
		Complete(&reconciler{Arguments: args, client: manager.GetClient()})
	if err != nil {
		log.Fatal(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
