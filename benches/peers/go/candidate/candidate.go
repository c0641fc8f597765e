// Package candidate has what both candidates share: the arguments, the timing, and the write of a leader.
package candidate

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The timing of every peer, where it has such a setting.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 2 * time.Second
)

// Arguments are those of every candidate: PROGRAM NAMESPACE NAME IDENTITY EVERY. The environment's KUBECONFIG says
// where the API server is.
type Arguments struct {
	Namespace, Name string // of the Lease, and of the ConfigMap that the leader writes
	Identity        string
	Every           time.Duration // between the writes of a leader; 0: one write for each term
}

// Parse ends the process when the arguments are wrong.
func Parse() (Arguments, *rest.Config) {
	if len(os.Args) != 5 {
		log.Fatalf("usage: KUBECONFIG=FILE %s NAMESPACE NAME IDENTITY EVERY_MS", os.Args[0])
	}
	every, err := strconv.Atoi(os.Args[4])
	if err != nil || every < 0 {
		log.Fatalf("EVERY_MS is %q, allowed: 0 or more milliseconds", os.Args[4])
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000 // the limit of its own rate is not what is measured
	return Arguments{
		Namespace: os.Args[1], Name: os.Args[2], Identity: os.Args[3],
		Every: time.Duration(every) * time.Millisecond,
	}, config
}

// Patch is the write number count of this candidate, as a merge patch of the ConfigMap.
func (a Arguments) Patch(count int) []byte {
	return fmt.Appendf(nil, `{"data":{"leader":%q,"count":"%d"}}`, a.Identity, count)
}

// Work writes at once, and then as often as the arguments say, until ctx ends. Then it finishes the write that is under
// way.
func (a Arguments) Work(ctx context.Context, write func(context.Context, []byte) error) {
	pause := a.Every
	for count := 0; ctx.Err() == nil; count++ {
		if err := write(context.WithoutCancel(ctx), a.Patch(count)); err != nil {
			log.Printf("write %d failed: %v", count, err)
		} else if pause == 0 {
			<-ctx.Done()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(pause, 10*time.Millisecond)):
		}
	}
}
