// Package contract checks requests against an OpenAPI document, and serves the document for
// reading.
//
//	MustParse ─► Document ─► Operation ─► Validate: values of the body, or broken rules (FieldErrors)
//
// The library kin-openapi checks the rules. Its messages are about schemas, so callers get the rule
// instead. The package is independent of routes and HTTP statuses. All types are safe for
// concurrent use, except FieldErrors.
package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"motorpool/telematics"
)

// Codes of requests that break the contract.
const (
	UnsupportedMediaType telematics.Code = "unsupported_media_type"
	MalformedJSON        telematics.Code = "malformed_json"
	ValidationFailed     telematics.Code = "validation_failed"
)

// Document is an OpenAPI document, parsed.
type Document struct {
	// JSON returns the document as JSON. The first call encodes it, so that a start does not wait.
	JSON func() []byte

	parsed *openapi3.T
	// anyInteger are path parameters that may be any 64-bit integer: the library need not check
	// them.
	anyInteger map[*openapi3.Parameter]bool
	// anyText are headers that may be any text that is not empty, with their maximum length in
	// bytes.
	anyText map[*openapi3.Parameter]int
}

// MustParse parses an OpenAPI document. It panics if that fails: use it for an embedded document.
func MustParse(text []byte) *Document {
	parsed, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(fmt.Sprintf("contract: load: %v", err))
	}
	d := &Document{parsed: parsed, anyInteger: map[*openapi3.Parameter]bool{}, anyText: map[*openapi3.Parameter]int{}}
	d.JSON = sync.OnceValue(func() []byte {
		encoded, err := parsed.MarshalJSON()
		if err != nil {
			panic(fmt.Sprintf("contract: encode: %v", err))
		}
		return encoded
	})
	for _, item := range parsed.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				d.classify(ref.Value)
			}
		}
	}
	return d
}

// classify recognises parameters with a simple schema. It compares the whole text of the schema, so
// that it misses no rule.
func (d *Document) classify(parameter *openapi3.Parameter) {
	schema, err := json.Marshal(parameter.Schema)
	if err != nil {
		return
	}
	switch parameter.In + " " + string(schema) {
	case `path {"format":"int64","type":"integer"}`:
		d.anyInteger[parameter] = true
	case `header {"type":"string"}`:
		d.anyText[parameter] = http.DefaultMaxHeaderBytes
	case `header {"maxLength":255,"minLength":1,"type":"string"}`: // characters
		d.anyText[parameter] = 255
	}
}

// Operation is a method of a path. The zero value has no rules.
type Operation struct {
	document *Document
	spec     openapi3.Operation
	bodiless bool // a change without a body
}

// Operation returns the operation of a method and a path. It panics if the document has none:
// routes are fixed when the program is built.
func (d *Document) Operation(method, path string) *Operation {
	item := d.parsed.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		panic(fmt.Sprintf("contract: the document lacks %s %s", method, path))
	}
	spec := *item.GetOperation(method)
	return &Operation{document: d, spec: spec, bodiless: method != http.MethodGet && spec.RequestBody == nil}
}
