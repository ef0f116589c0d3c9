package teltonika

import (
	"encoding/json"
	"errors"
	"testing"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// For any input: nothing panics, and what is accepted can be stored.
func FuzzDecode(f *testing.F) {
	for _, file := range []string{
		"record-parked.json", "record-driving.json", "record-no-fix.json", "answer-switched.json", "answer-already-set.json",
	} {
		f.Add([]byte(golden(f, file)))
	}
	f.Add([]byte(`{"state":{"reported":{"ts":"1767348000123","90":1e300,"281":"\u0000,x"}}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m := message(string(payload))
		report, _, reportErr := (Dialect{}).DecodeReport(m, received)
		answer, _, answerErr := (Dialect{}).DecodeAnswer(m, received)
		if reportErr == nil && answerErr == nil {
			t.Fatal("the message is both a record and an answer")
		}
		if errors.Is(reportErr, telematics.ErrOtherKind) != (answerErr == nil) ||
			errors.Is(answerErr, telematics.ErrOtherKind) != (reportErr == nil) {
			t.Fatalf("as a report: %v, as an answer: %v", reportErr, answerErr)
		}
		if answerErr == nil && !telematics.IsText(answer.Detail) {
			t.Errorf("detail %q, want valid text", answer.Detail)
		}
		for _, action := range telematics.ControlActions {
			if state, can := (Dialect{}).Recognise(van, &telematics.Command{Unit: unit, Action: action}, answer); can &&
				state != answer.State && state != telematics.Received {
				t.Errorf("%q is %s, and %s for %s", answer.Detail, answer.State, state, action)
			}
		}
		for field, value := range report.Values {
			raw, err := json.Marshal(value)
			require.NoError(t, err)
			if again, err := telematics.ParseValue(field, raw); err != nil || !field.Same(value, again) {
				t.Errorf("%s = %v is parsed again as %v, %v", field, value, again, err)
			}
		}
		if reportErr == nil && (report.At.IsZero() || report.At.After(received.Add(telematics.MaxAhead))) {
			t.Errorf("time %v, want a plausible one", report.At)
		}
	})
}
