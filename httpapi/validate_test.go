package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// What is not given to the checking library would pass it.
func TestIntegersOfPathsAreCheckedAsTheLibraryDoes(t *testing.T) {
	c := loadContract()
	for path, item := range c.document.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				parameter := ref.Value
				if parameter.In != "path" || !parameter.Schema.Value.Type.Is("integer") {
					continue
				}
				if !c.anyInteger[parameter] {
					t.Errorf("%s %s: %s is left to the library", method, path, parameter.Name)
				}
				for _, text := range strings.Fields("0 1 -5 +5 007 9223372036854775807 -9223372036854775808 9223372036854775808 1.0 1e3 0x1 1_0 one ١") {
					err := openapi3filter.ValidateParameter(t.Context(), &openapi3filter.RequestValidationInput{
						Request: httptest.NewRequest(http.MethodGet, "/", nil), PathParams: map[string]string{parameter.Name: text}, Options: everyRule,
					}, parameter)
					if (err == nil) != isInteger(text) {
						t.Errorf("%s %s: %s=%s: the library says %v", method, path, parameter.Name, text, err)
					}
				}
			}
		}
	}
}

func TestAbsentParametersPassTheLibrary(t *testing.T) {
	for path, item := range loadContract().document.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				input := &openapi3filter.RequestValidationInput{Request: httptest.NewRequest(method, "/", nil), Options: everyRule}
				if !ref.Value.Required && absent(ref.Value, input) {
					if err := openapi3filter.ValidateParameter(t.Context(), input, ref.Value); err != nil {
						t.Errorf("%s %s: without %s: %v", method, path, ref.Value.Name, err)
					}
				}
			}
		}
	}
}
