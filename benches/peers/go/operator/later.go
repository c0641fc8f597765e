package main

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// later looks at an object again after ten seconds if a write of it was refused.
func later(work reconcile.Func) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := work(ctx, request)
		if apierrors.ReasonForError(err) == "NotLeader" {
			return reconcile.Result{RequeueAfter: 10 * time.Second}, nil
		}
		return result, err
	}
}
