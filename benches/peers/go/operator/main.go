// An operator with controller-runtime, to run behind a sidecar: it copies a label of each NetworkPolicy's selector into an
// annotation. It does not elect: the sidecar does.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/go-logr/logr"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Usage: KUBECONFIG=FILE CONTENT_TYPE=TYPE [FILTER=generation] operator NAMESPACE
func main() {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.ContentType = os.Getenv("CONTENT_TYPE")
	config.QPS, config.Burst = 1000, 1000 // the limit of its own rate is not what is measured
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:                  cache.Options{DefaultNamespaces: map[string]cache.Config{os.Args[1]: {}}},
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	check(err)
	work := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
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
	controller := ctrl.NewControllerManagedBy(manager).For(&networkingv1.NetworkPolicy{})
	if os.Getenv("FILTER") == "generation" {
		controller = controller.WithEventFilter(predicate.GenerationChangedPredicate{})
	}
	check(controller.Complete(reconcile.Func(work)))
	check(manager.Start(ctrl.SetupSignalHandler()))
}
