package httpapi

import (
	_ "embed"
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
	return &contract{document: document, json: encoded}
})

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
