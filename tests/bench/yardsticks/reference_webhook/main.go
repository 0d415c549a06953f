// The yardstick of `make bench-webhook`: a mutating webhook as an engineer would write it in Go by hand.
//
// It decodes only the fields that it needs, into structs, and writes the JSON patch directly. It does less than Trimtab:
// every container gets the same requests, CPU limits go, and every pod gets one preferred node affinity term and one
// annotation. There is no policy, no usage, no cluster state and no check of the result.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"strconv"
)

type quantities map[string]string

type container struct {
	Resources *struct {
		Limits   quantities `json:"limits"`
		Requests quantities `json:"requests"`
	} `json:"resources"`
}

type nodeAffinity struct {
	Preferred []json.RawMessage `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

type pod struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
		Affinity       *struct {
			NodeAffinity *nodeAffinity `json:"nodeAffinity"`
		} `json:"affinity"`
	} `json:"spec"`
}

type review struct {
	Request struct {
		UID    string `json:"uid"`
		Object pod    `json:"object"`
	} `json:"request"`
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	PatchType string `json:"patchType"`
	Patch     []byte `json:"patch"`
}

type answer struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type selectorTerm struct {
	MatchExpressions []requirement `json:"matchExpressions"`
}

type preferredTerm struct {
	Weight     int          `json:"weight"`
	Preference selectorTerm `json:"preference"`
}

const (
	preferredField = "preferredDuringSchedulingIgnoredDuringExecution"
	annotation     = "webhook.example.com/status"
	annotationPath = "/metadata/annotations/webhook.example.com~1status"
	affinityPath   = "/spec/affinity/nodeAffinity"
	status         = "mutated v1"
)

var (
	requests = quantities{"cpu": "250m", "memory": "384Mi"}
	term     = preferredTerm{100, selectorTerm{[]requirement{{"node.example.com/class", "In", []string{"spot"}}}}}
)

// patchContainers returns the operations that give each container its requests and remove its CPU limit.
func patchContainers(operations []operation, field string, containers []container) []operation {
	for i, c := range containers {
		path := "/spec/" + field + "/" + strconv.Itoa(i) + "/resources"
		if c.Resources == nil || c.Resources.Limits == nil && c.Resources.Requests == nil {
			operations = append(operations, operation{"add", path, map[string]quantities{"requests": requests}})
			continue
		}
		verb := "replace"
		if c.Resources.Requests == nil {
			verb = "add"
		}
		operations = append(operations, operation{verb, path + "/requests", requests})
		if _, limited := c.Resources.Limits["cpu"]; !limited {
			continue
		}
		limit := path + "/limits/cpu"
		if len(c.Resources.Limits) == 1 {
			limit = path + "/limits"
		}
		operations = append(operations, operation{Op: "remove", Path: limit})
	}
	return operations
}

// patchAffinity returns the operation that appends the preferred term where the pod has its affinity.
func patchAffinity(p *pod) operation {
	terms := []preferredTerm{term}
	affinity := p.Spec.Affinity
	if affinity == nil {
		return operation{"add", "/spec/affinity", map[string]any{"nodeAffinity": map[string]any{preferredField: terms}}}
	}
	if affinity.NodeAffinity == nil {
		return operation{"add", affinityPath, map[string]any{preferredField: terms}}
	}
	if len(affinity.NodeAffinity.Preferred) == 0 {
		return operation{"add", affinityPath + "/" + preferredField, terms}
	}
	return operation{"add", affinityPath + "/" + preferredField + "/-", term}
}

func patch(p *pod) []operation {
	operations := make([]operation, 0, 24)
	operations = patchContainers(operations, "initContainers", p.Spec.InitContainers)
	operations = patchContainers(operations, "containers", p.Spec.Containers)
	operations = append(operations, patchAffinity(p))
	if p.Metadata.Annotations == nil {
		return append(operations, operation{"add", "/metadata/annotations", map[string]string{annotation: status}})
	}
	return append(operations, operation{"add", annotationPath, status})
}

// respond returns the AdmissionReview that answers the AdmissionReview in body.
func respond(body []byte) ([]byte, error) {
	var r review
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(patch(&r.Request.Object))
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer{"admission.k8s.io/v1", "AdmissionReview", response{r.Request.UID, true, "JSONPatch", encoded}})
}

func mutate(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = respond(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

func main() {
	address := flag.String("addr", "127.0.0.1:8443", "the address to listen on")
	cert := flag.String("cert", "", "the file of the serving certificate")
	key := flag.String("key", "", "the file of its key")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", mutate)
	// API servers speak HTTP/1.1 to webhooks, so HTTP/2 is off.
	server := &http.Server{Addr: *address, Handler: mux, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}
