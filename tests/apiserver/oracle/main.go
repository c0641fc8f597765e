// An oracle: it says how Kubernetes' own code reads a request. Each request on stdin is a line with its length in bytes,
// and then the head as it would stand on the wire. The answer to each is a line of JSON on stdout, in the same order. It
// ends when its stdin does.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
)

// What the server makes of a request. Each byte of a text is one character, so that texts that are not UTF-8 are told
// apart.
type reading struct {
	// Why the server answers with an error before it looks at what is asked.
	Refused string `json:"refused,omitempty"`

	IsResource  bool   `json:"is_resource,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Path        string `json:"path,omitempty"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
	// The segments from the resource on.
	Parts int `json:"parts,omitempty"`

	// What a server behind this one may take the path for, where that is something else: one that cleans paths, decodes
	// them twice, cuts parameters off, or takes a backslash for a slash.
	Others []other `json:"others,omitempty"`

	// Whether the options in the query make a write a dry run, and why the server refuses them.
	DryRun       bool   `json:"dry_run,omitempty"`
	OptionsError string `json:"options_error,omitempty"`
	// What its query parser complains of. The server does not look at it.
	QueryError string `json:"query_error,omitempty"`

	// Whether proxies and connections would see a wish for an upgrade, and for WebSocket.
	Upgrade   bool `json:"upgrade,omitempty"`
	WebSocket bool `json:"websocket,omitempty"`
	// Whether a kube-apiserver answers for this version of the group by itself. Other versions can be aggregated APIs.
	BuiltIn bool `json:"built_in,omitempty"`
}

type other struct {
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Namespace   string `json:"namespace"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
}

// As in the configuration of a kube-apiserver.
var resolver = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func main() {
	// It complains of each query that it cannot decode.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	answers := json.NewEncoder(out)
	for {
		head, err := next(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(read(head)); err != nil {
			log.Fatal(err)
		}
		// Whoever waits for the answer to the last one gets it.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// next is the next head.
func next(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	length, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
	if err != nil {
		return nil, fmt.Errorf("a length is needed: %w", err)
	}
	head := make([]byte, length)
	_, err = io.ReadFull(in, head)
	return head, err
}

func read(head []byte) reading {
	// What the server's own loop calls for each request.
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return reading{Refused: err.Error()}
	}
	info, err := resolver.NewRequestInfo(req)
	if err != nil {
		return reading{Refused: err.Error()}
	}
	said := reading{
		Others:      others(req, info),
		IsResource:  info.IsResourceRequest,
		Verb:        text(info.Verb),
		Path:        text(info.Path),
		Group:       text(info.APIGroup),
		Version:     text(info.APIVersion),
		Namespace:   text(info.Namespace),
		Resource:    text(info.Resource),
		Subresource: text(info.Subresource),
		Name:        text(info.Name),
		Parts:       len(info.Parts),
		Upgrade:     httpstream.IsUpgradeRequest(req),
		WebSocket:   wsstream.IsWebSocketRequest(req),
		BuiltIn:     builtIn(info.APIGroup, info.APIVersion),
	}
	if _, err := url.ParseQuery(req.URL.RawQuery); err != nil {
		said.QueryError = text(err.Error())
	}
	said.DryRun, err = dryRun(info.Verb, req.URL.Query())
	if err != nil {
		said.OptionsError = text(err.Error())
	}
	return said
}

// others is what a server makes of the path that takes it for something else.
func others(req *http.Request, info *request.RequestInfo) []other {
	var differ []other
	for _, path := range []string{
		path.Clean("/" + req.URL.Path),
		unescaped(req.URL.Path),
		parameters.ReplaceAllString(req.URL.Path, ""),
		strings.ReplaceAll(req.URL.Path, `\`, "/"),
	} {
		if path == req.URL.Path {
			continue
		}
		again := req.Clone(req.Context())
		again.URL.Path = path
		there, err := resolver.NewRequestInfo(again)
		if err != nil {
			continue
		}
		if reading := asOther(there); reading != asOther(info) {
			differ = append(differ, reading)
		}
	}
	return differ
}

// What some servers take for the parameters of a segment.
var parameters = regexp.MustCompile(";[^/]*")

func unescaped(path string) string {
	if twice, err := url.PathUnescape(path); err == nil {
		return twice
	}
	return path
}

func asOther(info *request.RequestInfo) other {
	return other{
		Verb:        text(info.Verb),
		Group:       text(info.APIGroup),
		Namespace:   text(info.Namespace),
		Resource:    text(info.Resource),
		Subresource: text(info.Subresource),
	}
}

// dryRun decodes the options of a write as its handler does, and says whether nothing would be stored.
func dryRun(verb string, query url.Values) (bool, error) {
	decode := func(into runtime.Object) error {
		return metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, into)
	}
	switch verb {
	case "create":
		var options metav1.CreateOptions
		if err := decode(&options); err != nil {
			return false, err
		}
		return dryrun.IsDryRun(options.DryRun), aggregate(validation.ValidateCreateOptions(&options))
	case "update":
		var options metav1.UpdateOptions
		if err := decode(&options); err != nil {
			return false, err
		}
		return dryrun.IsDryRun(options.DryRun), aggregate(validation.ValidateUpdateOptions(&options))
	case "patch":
		var options metav1.PatchOptions
		if err := decode(&options); err != nil {
			return false, err
		}
		// Only an apply patch may say more.
		kind := types.ApplyYAMLPatchType
		if options.FieldManager == "" {
			kind = types.MergePatchType
		}
		return dryrun.IsDryRun(options.DryRun), aggregate(validation.ValidatePatchOptions(&options, kind))
	}
	return false, nil
}

func aggregate(errors field.ErrorList) error {
	return errors.ToAggregate()
}

func builtIn(group, version string) bool {
	if group == apiextensions.GroupName || group == apiregistration.GroupName {
		return version == "v1"
	}
	return scheme.Scheme.IsVersionRegistered(schema.GroupVersion{Group: group, Version: version})
}

// text is one character for each byte.
func text(bytes string) string {
	runes := make([]rune, 0, len(bytes))
	for i := range len(bytes) {
		runes = append(runes, rune(bytes[i]))
	}
	return string(runes)
}
