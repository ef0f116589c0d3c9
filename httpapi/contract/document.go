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
}

// MustParse parses an OpenAPI document. It panics if that fails: use it for an embedded document.
func MustParse(text []byte) *Document {
	parsed, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(fmt.Sprintf("contract: load: %v", err))
	}
	return &Document{parsed: parsed, JSON: sync.OnceValue(func() []byte {
		encoded, err := parsed.MarshalJSON()
		if err != nil {
			panic(fmt.Sprintf("contract: encode: %v", err))
		}
		return encoded
	})}
}

// Operation is a method of a path. The zero value has no rules.
type Operation struct {
	spec     *openapi3.Operation // nil: no rules
	bodiless bool                // a change without a body
}

// Operation returns the operation of a method and a path. It panics if the document has none:
// routes are fixed when the program is built.
func (d *Document) Operation(method, path string) *Operation {
	item := d.parsed.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		panic(fmt.Sprintf("contract: the document lacks %s %s", method, path))
	}
	spec := item.GetOperation(method)
	return &Operation{spec: spec, bodiless: method != http.MethodGet && spec.RequestBody == nil}
}
