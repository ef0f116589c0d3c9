// Package contract checks requests against an OpenAPI document, and serves the document for
// reading.
//
//	MustParse ─► Document ─► Operation ─► Validate: values of the body, or what breaks which rule (FieldErrors)
//
// Rules are checked by the library kin-openapi; its messages are about schemas, so callers get the
// rule instead. The package knows no route and no HTTP status. All its values are safe for
// concurrent use, except FieldErrors.
package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

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
	JSON []byte // the document as JSON

	parsed *openapi3.T
	// anyInteger are parameters of paths that may be any integer of 64 bits: the library need not
	// check them.
	anyInteger map[*openapi3.Parameter]bool
	// anyText are headers that may be any text up to a number of bytes, if it is not empty.
	anyText map[*openapi3.Parameter]int
}

// MustParse panics where the text is not a valid document: it is for one that is embedded in the
// program.
func MustParse(text []byte) *Document {
	parsed, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(fmt.Sprintf("contract: load: %v", err))
	}
	encoded, err := parsed.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("contract: encode: %v", err))
	}
	d := &Document{JSON: encoded, parsed: parsed, anyInteger: map[*openapi3.Parameter]bool{}, anyText: map[*openapi3.Parameter]int{}}
	for _, item := range parsed.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				d.classify(ref.Value)
			}
		}
	}
	return d
}

// classify compares the whole text of a schema, so that none of its rules is overlooked.
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
	document    *Document
	spec        openapi3.Operation
	bodiless    bool // a change that takes no body
	strictQuery bool // refuses parameters that it does not have
}

// Operation panics where the document has no such operation: routes are fixed when the program is
// built.
func (d *Document) Operation(method, path string) *Operation {
	item := d.parsed.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		panic(fmt.Sprintf("contract: the document lacks %s %s", method, path))
	}
	spec := *item.GetOperation(method)
	return &Operation{
		document: d, spec: spec, bodiless: method != http.MethodGet && spec.RequestBody == nil,
		strictQuery: (method == http.MethodPut || method == http.MethodDelete) && strings.HasPrefix(path, "/api/v1/admin/"),
	}
}
