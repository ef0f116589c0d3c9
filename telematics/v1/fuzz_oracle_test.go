package v1

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"motorpool/telematics"
)

// encoding/json bears witness for what a report says: slowly, and without knowing what a
// report is.

// saidAnywhere returns the members of a report; not ok: it is none.
func saidAnywhere(message []byte) (said map[string]any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.UseNumber()
	if !json.Valid(message) || decoder.Decode(&said) != nil {
		return nil, false
	}
	return said, said != nil
}

// checkDropped demands that what was dropped has a name that a report knows, and a reason.
func checkDropped(t *testing.T, dropped []telematics.Dropped) {
	t.Helper()
	for _, d := range dropped {
		known := slices.ContainsFunc(outline, func(p *place) bool { return p.path == d.Field })
		if !known || d.Field == "" || d.Reason == "" {
			t.Errorf("dropped without a name or a reason: %+v", d)
		}
	}
}

// checkNothingVanished demands that each field that was said is taken, or that its dropping,
// or that of what it is within, is reported.
func checkNothingVanished(t *testing.T, said map[string]any, r telematics.Report, dropped []telematics.Dropped) {
	t.Helper()
	for _, field := range telematics.Fields {
		if field.IsRaw() || !saysField(said, strings.Split(string(field), ".")) {
			continue
		}
		_, taken := r.Values[field]
		reported := slices.ContainsFunc(dropped, func(d telematics.Dropped) bool {
			return d.Field == string(field) || strings.HasPrefix(string(field), d.Field+".")
		})
		if !taken && !reported {
			t.Errorf("%s vanished; dropped %v", field, dropped)
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
	return true // of null, and of what ought to be an object
}

// checkSameAs demands that a report which was written anew, with every name once and in
// another order, says the same.
func checkSameAs(t *testing.T, message []byte, said map[string]any, r telematics.Report, dropped []telematics.Dropped) {
	t.Helper()
	if bytes.ContainsRune(message, '\\') {
		return // a time that is written with escapes is none until it is written without
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(said); err != nil {
		t.Fatal(err)
	}
	again, droppedAgain, err := RereadReport(text.Bytes(), received)
	// Their names may be in other letters, and then the order counts.
	again.Answers, r.Answers = nil, nil
	withoutAnswers := func(d telematics.Dropped) bool { return d.Field == "commands" }
	dropped = slices.DeleteFunc(slices.Clone(dropped), withoutAnswers)
	droppedAgain = slices.DeleteFunc(droppedAgain, withoutAnswers)
	if err != nil || !reflect.DeepEqual(again, r) || !slices.Equal(droppedAgain, dropped) {
		t.Errorf("%s reads as\n%+v\n%v\nwas\n%+v\n%v\n%v", text.Bytes(), again, droppedAgain, r, dropped, err)
	}
}
