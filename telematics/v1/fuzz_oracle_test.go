package v1

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// The oracle of a report's content is encoding/json, which is slow and does not know reports.

// saidAnywhere returns the members of a report; not ok: it is not an object.
func saidAnywhere(message []byte) (said map[string]any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.UseNumber()
	if !json.Valid(message) || decoder.Decode(&said) != nil {
		return nil, false
	}
	return said, said != nil
}

// checkDropped checks that what was dropped has a name in the outline of a report, and a reason.
func checkDropped(t *testing.T, dropped []telematics.Dropped) {
	t.Helper()
	for _, d := range dropped {
		known := slices.ContainsFunc(outline, func(p *place) bool { return p.path == d.Field })
		if !known || d.Field == "" || d.Reason == "" {
			t.Errorf("dropped without a known name or a reason: %+v", d)
		}
	}
}

// checkNothingVanished checks that each given field is accepted, or reported as dropped, itself or
// its parent.
func checkNothingVanished(t *testing.T, said map[string]any, r telematics.Report, dropped []telematics.Dropped) {
	t.Helper()
	for _, field := range telematics.Fields {
		if field.IsRaw() || !saysField(said, strings.Split(field.String(), ".")) {
			continue
		}
		_, taken := r.Values[field]
		reported := slices.ContainsFunc(dropped, func(d telematics.Dropped) bool {
			return d.Field == field.String() || strings.HasPrefix(field.String(), d.Field+".")
		})
		if !taken && !reported {
			t.Errorf("%s is neither accepted nor dropped; dropped %v", field, dropped)
		}
	}
}

func saysField(said map[string]any, path []string) bool {
	value, ok := said[path[0]]
	within, isObject := value.(map[string]any)
	switch {
	case !ok || len(path) == 1:
		return ok
	case isObject:
		return saysField(within, path[1:])
	}
	return true // a null, or another type where an object belongs
}

// checkSameAs checks that a report which is encoded again, with each name once and in another
// order, is decoded as the same.
func checkSameAs(t *testing.T, message []byte, said map[string]any, r telematics.Report, dropped []telematics.Dropped) {
	t.Helper()
	if bytes.ContainsRune(message, '\\') {
		return // a time with escapes is invalid, but valid once it is encoded again
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(said))
	again, droppedAgain, err := RereadReport(text.Bytes(), received)
	// Their member names may differ in case, and then the order matters.
	again.Answers, r.Answers = nil, nil
	withoutAnswers := func(d telematics.Dropped) bool { return d.Field == "commands" }
	dropped = slices.DeleteFunc(slices.Clone(dropped), withoutAnswers)
	droppedAgain = slices.DeleteFunc(droppedAgain, withoutAnswers)
	if err != nil || !reflect.DeepEqual(again, r) || !slices.Equal(droppedAgain, dropped) {
		t.Errorf("%s is decoded as\n%+v\ndropped %v\nwant\n%+v\ndropped %v\nerror %v", text.Bytes(), again, droppedAgain, r, dropped, err)
	}
}
