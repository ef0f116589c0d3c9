package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var contractYAML []byte

// contract is openapi.yaml, parsed.
type contract struct {
	document *openapi3.T
	json     []byte

	// anyInteger are parameters of paths that may be any integer of 64 bits: what parses as one needs no other check.
	anyInteger map[*openapi3.Parameter]bool
	// anyText are headers that may be any text of so many bytes, if it is not empty.
	anyText map[*openapi3.Parameter]int
}

// loadContract returns the one contract of this build. It panics where the embedded document
// is broken: no build that passed its tests has one.
var loadContract = sync.OnceValue(func() *contract {
	document, err := openapi3.NewLoader().LoadFromData(contractYAML)
	if err != nil {
		panic(fmt.Sprintf("httpapi: load openapi.yaml: %v", err))
	}
	encoded, err := document.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("httpapi: encode openapi.json: %v", err))
	}
	c := &contract{document: document, json: encoded, anyInteger: map[*openapi3.Parameter]bool{}, anyText: map[*openapi3.Parameter]int{}}
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				c.know(ref.Value)
			}
		}
	}
	return c
})

// know goes by the whole text of a schema, so that no rule of one is overlooked.
func (d *contract) know(parameter *openapi3.Parameter) {
	schema, err := json.Marshal(parameter.Schema)
	if err != nil {
		return
	}
	switch parameter.In + " " + string(schema) {
	case `path {"format":"int64","type":"integer"}`:
		d.anyInteger[parameter] = true
	case `header {"type":"string"}`:
		d.anyText[parameter] = maxHeader
	case `header {"maxLength":255,"minLength":1,"type":"string"}`: // characters
		d.anyText[parameter] = 255
	}
}

// operation panics where a route has no contract.
func (d *contract) operation(method, path string) *openapi3.Operation {
	item := d.document.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		panic(fmt.Sprintf("httpapi: openapi.yaml lacks %s %s", method, path))
	}
	return item.GetOperation(method)
}

func (d *contract) serveYAML(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", contractYAML)
}

func (d *contract) serveJSON(c echo.Context) error {
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, d.json)
}
