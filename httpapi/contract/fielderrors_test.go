package contract

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestRule_SaysWhatEachSchemaTakes(t *testing.T) {
	null := openapi3.NewStringSchema().WithEnum("available", nil).WithNullable()
	words := openapi3.NewArraySchema().WithItems(openapi3.NewStringSchema())
	settings := openapi3.NewObjectSchema().WithAdditionalProperties(openapi3.NewStringSchema())
	text := openapi3.NewStringSchema().WithMinLength(1).WithMaxLength(9).WithPattern(`\S`)
	for want, schema := range map[string]*openapi3.Schema{
		"must be one of available, or null":                        null,
		"must be a number from -90 to 90":                          openapi3.NewFloat64Schema().WithMin(-90).WithMax(90),
		"must be a number of at least 0.5":                         openapi3.NewFloat64Schema().WithMin(0.5),
		"must be a number":                                         openapi3.NewFloat64Schema(),
		"must be an integer from 1 to 9007199254740991":            openapi3.NewInt64Schema().WithMin(1).WithMax(9007199254740991),
		"must be an array, each element of which must be a string": words,
		"must be an object, each member of which must be a string": settings,
		"must be an object":                                        openapi3.NewObjectSchema(),
		"must be a string that matches ^[a-z]$":                    openapi3.NewStringSchema().WithPattern("^[a-z]$"),
		"must be a string of 1 to 9 characters that matches \\S":   text,
	} {
		if got := rule(schema); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A caller reads these sentences, not the names of types and of Go's values.
func TestRule_OfEachRequestIsASentence(t *testing.T) {
	bare := regexp.MustCompile(`<nil>|must be (array|object|string|number|integer)\b|%!`)
	checked := 0
	check := func(where string, ref *openapi3.SchemaRef) {
		checked++
		if got := rule(ref.Value); bare.MatchString(got) {
			t.Errorf("%s: %q", where, got)
		}
		if s := ref.Value; s.Type.Is(openapi3.TypeNumber) && s.Max != nil && !strings.Contains(rule(s), decimal(*s.Max)) {
			t.Errorf("%s: %q does not say its greatest value", where, rule(s))
		}
		if s := ref.Value; s.Type.Is(openapi3.TypeArray) && s.MaxItems != nil && !strings.Contains(rule(s), fmt.Sprint(*s.MaxItems)) {
			t.Errorf("%s: %q does not say how many elements it may have", where, rule(s))
		}
	}
	for path, item := range loadDocument(t).parsed.Paths.Map() {
		for method, operation := range item.Operations() {
			where := method + " " + path
			for _, parameter := range operation.Parameters {
				check(where+" "+parameter.Value.Name, parameter.Value.Schema)
			}
			if operation.RequestBody == nil || operation.RequestBody.Value.Content.Get("application/json") == nil {
				continue
			}
			body := operation.RequestBody.Value.Content.Get("application/json").Schema
			for name, member := range body.Value.Properties {
				check(where+" "+name, member)
				for inner, ref := range member.Value.Properties {
					check(where+" "+name+"."+inner, ref)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d rules were checked", checked)
	}
}
