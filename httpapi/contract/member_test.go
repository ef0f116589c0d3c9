package contract

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

func loadDocument(t *testing.T) *Document {
	t.Helper()
	text, err := os.ReadFile("../openapi.yaml")
	require.NoError(t, err)
	return MustParse(text)
}

// An open object would accept unknown members, and the members of objects in a list are not
// checked.
func TestDocument_ObjectsOfRequestBodiesAreClosed(t *testing.T) {
	bodies := 0
	var closed func(name string, s *openapi3.Schema)
	closed = func(name string, s *openapi3.Schema) {
		if values := s.AdditionalProperties.Schema; values != nil && values.Value.Type.Is(openapi3.TypeString) &&
			strings.HasSuffix(name, ".installation") {
			return // its unit's protocol checks the names
		}
		if strings.HasSuffix(name, "/areas/{area}.geometry") || strings.HasSuffix(name, "/areas/{area}.properties") {
			return // package areas checks the geometry; a GeoJSON Feature has any properties
		}
		if s.Type.Is(openapi3.TypeObject) && (s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has) {
			t.Errorf("%s accepts unknown members", name)
		}
		if len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) > 0 {
			t.Errorf("%s has a schema whose members are not checked", name)
		}
		if s.Items != nil && !s.Items.Value.Type.Is(openapi3.TypeInteger) && !s.Items.Value.Type.Is(openapi3.TypeString) {
			closed(name+"[]", s.Items.Value)
		}
		for member, ref := range s.Properties {
			closed(name+"."+member, ref.Value)
		}
	}
	for path, item := range loadDocument(t).parsed.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody != nil && path != "/webhooks/stripe" {
				bodies++
				closed(method+" "+path, operation.RequestBody.Value.Content.Get("application/json").Schema.Value)
			}
		}
	}
	if bodies < 8 {
		t.Errorf("found %d request bodies, want at least 8", bodies)
	}
}

func TestDocument_BulkCommandsHaveEachControlAction(t *testing.T) {
	body := loadDocument(t).parsed.Components.Schemas["BulkCommandRequest"].Value
	var want []any
	for _, action := range telematics.ControlActions {
		want = append(want, string(action))
	}
	assert.EqualSlices(t, body.Properties["action"].Value.Enum, want, "the actions of BulkCommandRequest in openapi.yaml")
}

// A status has each of its members, null where nothing is known.
func TestDocument_StatusRequiresEachMember(t *testing.T) {
	var check func(name string, s *openapi3.Schema)
	check = func(name string, s *openapi3.Schema) {
		for member, ref := range s.Properties {
			if !slices.Contains(s.Required, member) {
				t.Errorf("openapi.yaml: %s lacks %s in required", name, member)
			}
			check(name+"."+member, ref.Value)
		}
	}
	check("VehicleStatus", loadDocument(t).parsed.Components.Schemas["VehicleStatus"].Value)
}

func TestNearest_SuggestsTheProbableName(t *testing.T) {
	known := []string{"amount", "duration_ms", "end_date", "full", "kind", "reason", "signal", "start_date", "vehicle_ids"}
	for name, want := range map[string]string{
		"amuont": "amount", "AMOUNT": "amount", "amt": "", "durationMs": "duration_ms", "duration": "duration_ms",
		"endDate": "end_date", "end": "",
		"end-date": "end_date", "vehicles": "vehicle_ids", "vehicle_id": "vehicle_ids", "resaon": "reason", "": "", "x": "",
		"fuel": "full", "kond": "kind", "größe": "",
		"Reasön": "reason",
	} {
		assert.Equal(t, Nearest(name, known), want, "Nearest(%q)", name)
	}
}

func TestRepeatedName_FindsTheFirst(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"a":2}`: "a", `{"a":"a","b":"a"}`: "", `{"a":{"b":1,"b":2}}`: "a.b", `{"a":{"b":1},"b":{"b":1}}`: "",
		`[{"a":1},{"a":1}]`: "", `[{"a":1,"a":1}]`: "[0].a",
		`{"a":["a","a"],"b":1}`: "", `{"a":[{"b":1,"b":[]}]}`: "a[0].b", `{"a":{},"a":{}}`: "a", `{"\u0061":1,"a":2}`: "a",
		`{"A":1,"a":2}`: "", `{"a":null,"b":true,"a":1.5}`: "a",
		`"a"`: "", `7`: "", `null`: "", `{}`: "", `[]`: "", `[[["a","a"]]]`: "", `{"a":[1,{"x":"x"}],"x":{"a":"x"},"x":1}`: "x",
	} {
		got, repeated := RepeatedName([]byte(text))
		if got != want || repeated != (want != "") {
			t.Errorf("%s: RepeatedName = %q, %t; want %q", text, got, repeated, want)
		}
	}
	if _, repeated := RepeatedName([]byte(`{"":1,"":2}`)); !repeated {
		t.Error("a repeated empty name was not found")
	}
}

func TestRepeatedName_DeepBodyNeedsLittleMemory(t *testing.T) {
	const levels = 9000 // the library decodes 10,000
	text := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if name, repeated := RepeatedName([]byte(text)); repeated {
		t.Errorf("RepeatedName = %.20q, want none", name)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d KB were allocated for a body of %d KB", got>>10, len(text)>>10)
	}
}

// A body of the greatest size may have as many levels as bytes.
func TestRepeatedName_NeedsLittleMemoryForManyLevels(t *testing.T) {
	text := []byte(strings.Repeat("[", 9_000) + `{"a":1,"a":2}` + strings.Repeat("]", 9_000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, repeated := RepeatedName(text)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; !repeated || used > 8<<20 {
		t.Errorf("%d bytes allocated, repeated %t", used, repeated)
	}
}
