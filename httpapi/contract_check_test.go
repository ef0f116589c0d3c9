package httpapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// document returns openapi.yaml, made strict: a member that the contract does not have is an error.
var document = sync.OnceValue(func() *openapi3.T {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		panic(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err)
	}
	for _, schema := range document.Components.Schemas {
		closeObjects(schema.Value)
	}
	return document
})

// The checking library treats a stream as text.
func init() {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/gpx+xml", openapi3filter.PlainBodyDecoder)
}

// The checking library has no check of this format.
var uuids = openapi3.WithStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(openapi3.FormatOfStringForUUIDOfRFC9562))

func closeObjects(s *openapi3.Schema) {
	if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, p := range s.Properties {
		closeObjects(p.Value)
	}
	if s.Items != nil {
		closeObjects(s.Items.Value)
	}
}

var contractRouter = sync.OnceValue(func() routers.Router {
	router, err := gorillamux.NewRouter(document())
	if err != nil {
		panic(err)
	}
	return router
})

// checkContract fails the test if a response violates the contract.
func checkContract(t *testing.T, request *http.Request, recorded *httptest.ResponseRecorder) {
	t.Helper()
	route, params, err := contractRouter().FindRoute(request)
	if err != nil || recorded.Code == http.StatusNotFound && recorded.Body.Len() > 0 && errorCode(recorded) == "not_found" {
		if page := strings.HasPrefix(recorded.Header().Get("Content-Type"), "text/html"); recorded.Code >= 400 && !page {
			checkError(t, recorded)
		}
		return
	}
	err = openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: params, Route: route},
		Status:                 recorded.Code,
		Header:                 recorded.Header(),
		Body:                   io.NopCloser(bytes.NewReader(recorded.Body.Bytes())),
		Options: &openapi3filter.Options{
			MultiError: true, IncludeResponseStatus: true,
			SchemaValidationOptions: []openapi3.SchemaValidationOption{uuids},
		},
	})
	if err != nil {
		t.Errorf(
			"%s %s: the answer with status %d violates the contract: %v\n%s", request.Method, request.URL,
			recorded.Code, err, recorded.Body,
		)
	}
}

// checkError checks an error response without an operation in the contract.
func checkError(t *testing.T, recorded *httptest.ResponseRecorder) {
	t.Helper()
	var body any
	if err := json.Unmarshal(recorded.Body.Bytes(), &body); err != nil {
		t.Errorf("status %d without an envelope: %v\n%s", recorded.Code, err, recorded.Body)
		return
	}
	schema := document().Components.Schemas["ErrorEnvelope"].Value
	if err := schema.VisitJSON(body, openapi3.VisitAsResponse(), openapi3.MultiErrors(), uuids); err != nil {
		t.Errorf("status %d violates the contract of errors: %v\n%s", recorded.Code, err, recorded.Body)
	}
}

func errorCode(recorded *httptest.ResponseRecorder) string {
	var body struct{ Error struct{ Code string } }
	_ = json.Unmarshal(recorded.Body.Bytes(), &body) // without an envelope there is no code
	return body.Error.Code
}
