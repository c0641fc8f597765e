// A kubelet that runs nothing: enough of one for `kubectl exec` and `kubectl logs -f` to have an answer. It prints
// {"port":N} on stdout, and ends when its stdin does.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	listen := flag.String("listen", "127.0.0.1:0", "the address to serve HTTPS on")
	flag.Parse()
	log.Fatal(serve(*listen))
}

func serve(address string) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := json.NewEncoder(os.Stdout).Encode(map[string]int{"port": port}); err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", logs)
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", exec)
	server := http.Server{Handler: routes, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	return server.ServeTLS(listener, "", "")
}

// logs writes three lines or, for those who follow, a line each 100 ms.
func logs(w http.ResponseWriter, r *http.Request) {
	follow := r.FormValue("follow") == "true"
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for line := 1; follow || line <= 3; line++ {
		if _, err := fmt.Fprintf(w, "line %d\n", line); err != nil {
			return
		}
		if !follow {
			continue
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticks.C:
		}
	}
}

func exec(w http.ResponseWriter, r *http.Request) {
	streams, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	const idle, creation = time.Minute, 10 * time.Second
	remotecommand.ServeExec(w, r, echo{}, r.PathValue("pod"), "", r.PathValue("container"), r.Form["command"], streams,
		idle, creation, remotecommand.SupportedStreamingProtocols)
}

// echo takes any command for `echo`, and any stdin for what is to be echoed after it.
type echo struct{}

func (echo) ExecInContainer(
	_ context.Context, _, _, _ string, command []string, stdin io.Reader, stdout, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if len(command) > 1 {
		if _, err := fmt.Fprintln(stdout, strings.Join(command[1:], " ")); err != nil {
			return err
		}
	}
	if stdin != nil {
		if _, err := io.Copy(stdout, stdin); err != nil {
			return err
		}
	}
	return nil
}
