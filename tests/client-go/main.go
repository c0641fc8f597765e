// A candidate as the author of a controller writes one with client-go: it contends for a Lease, and writes while it
// leads. With --patch it only writes once. Each event is a line of JSON on stdout. It ends when its stdin does, so that it
// never outlives its parent.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type candidate struct {
	identity        string
	namespace, name string // of the Lease, and of the ConfigMap that is written
	timing          timing
	writers         int
	writeEvery      time.Duration
	patch           string // the only write, if there is one; then it does not contend

	election, work  kubernetes.Interface
	working         sync.Mutex // held while there are writers
	written, failed atomic.Int64
}

type timing struct{ lease, renew, retry time.Duration }

type event struct {
	At       int64   `json:"at"` // microseconds since 1970
	Event    string  `json:"event"`
	Identity string  `json:"identity,omitempty"`
	Holder   *string `json:"holder,omitempty"`
	Written  *int64  `json:"written,omitempty"`
	Failed   *int64  `json:"failed,omitempty"`

	Reason metav1.StatusReason `json:"reason,omitempty"`
}

var stdout sync.Mutex

func emit(event event) {
	stdout.Lock()
	defer stdout.Unlock()
	event.At = time.Now().UnixMicro()
	if err := json.NewEncoder(os.Stdout).Encode(event); err != nil {
		log.Fatalf("cannot write an event: %v", err)
	}
}

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	c, err := fromFlags()
	if err != nil {
		log.Fatal(err)
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if c.patch != "" {
		emit(event{Event: "patched", Reason: errors.ReasonForError(c.send(stop, c.patch))})
		return
	}
	c.contend(stop)
	written, failed := c.written.Load(), c.failed.Load()
	emit(event{Event: "ended", Written: &written, Failed: &failed})
}

func fromFlags() (*candidate, error) {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig `FILE`")
	lease := flag.String("lease", "", "the Lease to contend for, and the ConfigMap to write, as `NS/NAME`")
	identity := flag.String("identity", "", "the holder that it writes into the Lease")
	seconds := flag.String("timing", "15/10/2", "`LEASE/RENEW/RETRY` in seconds, the last two with fractions if need be")
	every := flag.Duration("write-every", 0, "how often each writer writes while this leads; 0: never")
	writers := flag.Int("writers", 1, "how many writers there are")
	patch := flag.String("patch", "", "only sends this `PATCH` of the ConfigMap, and says for what reason it has failed")
	flag.Parse()

	namespace, name, found := strings.Cut(*lease, "/")
	if !found || *kubeconfig == "" || *identity == "" {
		return nil, fmt.Errorf("--kubeconfig FILE, --lease NS/NAME and --identity ID are needed")
	}
	timing, err := parseTiming(*seconds)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000 // its own rate limit is not what is looked at
	work, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// As controller-runtime does: the election has its own limiter, and a call that hangs leaves time for another.
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = timing.renew / 2
	election, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &candidate{
		identity: *identity, namespace: namespace, name: name, timing: timing,
		writers: *writers, writeEvery: *every, patch: *patch,
		election: election, work: work,
	}, nil
}

func parseTiming(text string) (timing, error) {
	var parts []time.Duration
	for _, part := range strings.Split(text, "/") {
		seconds, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return timing{}, fmt.Errorf("--timing %s: %w", text, err)
		}
		parts = append(parts, time.Duration(seconds*float64(time.Second)))
	}
	if len(parts) != 3 || parts[0]%time.Second != 0 {
		return timing{}, fmt.Errorf("--timing %s: three numbers of seconds are needed, the first a whole one", text)
	}
	return timing{parts[0], parts[1], parts[2]}, nil
}

// contend holds the Lease as often as it can be had, until stop: then the writers end first, and the election after
// them, as client-go asks of those who set ReleaseOnCancel.
func (c *candidate) contend(stop context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-stop.Done()
		c.working.Lock()
		defer c.working.Unlock()
		cancel()
	}()
	for ctx.Err() == nil {
		c.term(ctx, stop)
	}
}

// term contends until the Lease has been held and lost.
func (c *candidate) term(ctx, stop context.Context) {
	var led atomic.Bool
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: c.name},
			Client:     c.election.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.identity},
		},
		LeaseDuration:   c.timing.lease,
		RenewDeadline:   c.timing.renew,
		RetryPeriod:     c.timing.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				led.Store(true)
				emit(event{Event: "leading", Identity: c.identity})
				c.write(leading, stop)
			},
			OnStoppedLeading: func() { // called by each that ends, whether it led or not
				if led.Load() {
					emit(event{Event: "stopped", Identity: c.identity})
				}
			},
			OnNewLeader: func(holder string) {
				emit(event{Event: "observed", Holder: &holder})
			},
		},
	})
}

// write keeps the writers at it until leading or stop ends, and returns when the last has ended.
func (c *candidate) write(leading, stop context.Context) {
	c.working.Lock()
	defer c.working.Unlock()
	if c.writeEvery == 0 || stop.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(leading)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()

	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
	_, err := c.work.CoreV1().ConfigMaps(c.namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		log.Printf("cannot create the ConfigMap %s: %v", c.name, err)
	}
	var writers sync.WaitGroup
	for range c.writers {
		writers.Go(func() { c.writer(ctx) })
	}
	writers.Wait()
}

func (c *candidate) writer(ctx context.Context) {
	ticks := time.NewTicker(c.writeEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		patch := fmt.Sprintf(`{"data":{%q:"%d"}}`, c.identity, c.written.Load())
		if c.send(ctx, patch) != nil {
			c.failed.Add(1)
		} else {
			c.written.Add(1)
		}
	}
}

func (c *candidate) send(ctx context.Context, patch string) error {
	_, err := c.work.CoreV1().ConfigMaps(c.namespace).
		Patch(ctx, c.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
