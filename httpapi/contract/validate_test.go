package contract

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
)

func loadDocument(t *testing.T) *Document {
	t.Helper()
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return MustParse(text)
}

// Integers that are checked here do not reach the library's check.
func TestCheck_IntegersOfPathsLikeTheLibrary(t *testing.T) {
	c := loadDocument(t)
	for path, item := range c.parsed.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				parameter := ref.Value
				if parameter.In != "path" || !parameter.Schema.Value.Type.Is("integer") {
					continue
				}
				if !c.anyInteger[parameter] {
					t.Errorf("%s %s: the parameter %s is checked by the library", method, path, parameter.Name)
				}
				for _, text := range strings.Fields("0 1 -5 +5 007 9223372036854775807 -9223372036854775808 9223372036854775808 1.0 " +
					"1e3 0x1 1_0 one ١") {
					err := openapi3filter.ValidateParameter(t.Context(), &openapi3filter.RequestValidationInput{
						Request: httptest.NewRequest(
							http.MethodGet, "/", nil,
						),
						PathParams: map[string]string{parameter.Name: text}, Options: everyRule,
					}, parameter)
					if (err == nil) != isInteger(text) {
						t.Errorf("%s %s: %s=%s: the library disagrees: %v", method, path, parameter.Name, text, err)
					}
				}
			}
		}
	}
}

func TestCheck_AbsentParametersPassTheLibrary(t *testing.T) {
	for path, item := range loadDocument(t).parsed.Paths.Map() {
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

func TestCheck_TextsOfUncheckedHeadersPassTheLibrary(t *testing.T) {
	c := loadDocument(t)
	passed := 0
	for path, item := range c.parsed.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, ref := range operation.Parameters {
				parameter := ref.Value
				for _, text := range []string{"", " ", "x", "wait=20", "a, b", "null", "1", `"x"`, "\xff", strings.Repeat("x", 255),
					strings.Repeat("x", 256), strings.Repeat("ü", 200)} {
					request := httptest.NewRequest(method, "/", nil)
					request.Header[http.CanonicalHeaderKey(parameter.Name)] = []string{text, "more"}
					if !c.isAnyText(parameter, request.Header) {
						continue
					}
					passed++
					if err := openapi3filter.ValidateParameter(t.Context(),
						&openapi3filter.RequestValidationInput{Request: request, Options: everyRule}, parameter); err != nil {
						t.Errorf("%s %s: %s: %.20q: %v", method, path, parameter.Name, text, err)
					}
				}
				if parameter.In == "header" && c.anyText[parameter] == 0 && strings.Contains(path, "/control/") {
					t.Errorf("%s %s: the header %s of a command is checked by the library", method, path, parameter.Name)
				}
			}
		}
	}
	if passed == 0 {
		t.Error("no header was checked")
	}
}
