package ovms

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// For any input: nothing panics, and what is accepted can be stored.
func FuzzDecode(f *testing.F) {
	for _, g := range messages(f) {
		f.Add(g.Topic, []byte(g.Payload))
	}
	f.Fuzz(func(t *testing.T, topic string, payload []byte) {
		unit, subject, err := Dialect{}.ParseTopic(topic)
		if err != nil {
			return
		}
		_, err = telematics.ParseUnit(string(unit))
		require.NoError(t, err)
		m := telematics.Message{Dialect: Dialect{}, Unit: unit, Subject: subject, Payload: payload}
		_, _ = Dialect{}.DecodePresence(m, received)
		if a, _, err := (Dialect{}).DecodeAnswer(m, received); err == nil && (!telematics.IsText(a.Detail) || !utf8.ValidString(a.Detail)) {
			t.Errorf("detail %q, want valid text", a.Detail)
		}
		r, _, err := Dialect{}.DecodeReport(m, received)
		if err != nil {
			return
		}
		for field, value := range r.Values {
			said, err := json.Marshal(value)
			require.NoError(t, err)
			if _, err := telematics.ParseValue(field, said); err != nil {
				t.Errorf("%s = %v: %v", field, value, err)
			}
		}
		for _, a := range r.Alarms {
			if !telematics.IsText(a.Kind) || !telematics.IsText(a.Text) || !utf8.ValidString(a.Kind+a.Text) {
				t.Errorf("alarm %q, want valid text", a)
			}
		}
	})
}
