package v1

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/wiretest"
)

// For any input: nothing panics, what is accepted can be stored, and what is encoded again is
// decoded as the same.

func FuzzDecodeReport(f *testing.F) {
	wiretest.Seed(f, "report-*.json")
	f.Add([]byte(`{"at":"2026-01-02T10:00:00Z","telemetry":{"gear":"S","charging_status":"x"},"diagnostics":{"dtcs":["x","P0420"]}}`))
	for _, message := range sampleReports {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		own := bytes.Clone(message)
		r, dropped, err := DecodeReport(own, received)
		clear(own) // the report must not refer to it
		said, ok := saidAnywhere(message)
		if refused := !ok || len(message) > telematics.MaxMessage; (err != nil) != refused {
			t.Fatalf("error %v for %d bytes; JSON: %t", err, len(message), ok)
		}
		if err != nil {
			return
		}
		checkReport(t, r)
		checkDropped(t, dropped)
		checkNothingVanished(t, said, r, dropped)
		checkSameAs(t, message, said, r, dropped)
		encoded := EncodeReport(r)
		if len(encoded) > telematics.MaxMessage { // escapes may make a message longer
			return
		}
		again, dropped, err := DecodeReport(encoded, received)
		if err != nil || len(dropped) != 0 || !reflect.DeepEqual(withoutRaw(again), withoutRaw(r)) {
			t.Errorf("%s is decoded as\n%+v\nwant\n%+v\ndropped %v, %v", encoded, again, r, dropped, err)
		}
		once := telematics.Merge(nil, r)
		if twice := telematics.Merge(once, r); !reflect.DeepEqual(once, twice) {
			t.Errorf("merged once %v, merged twice %v", once, twice)
		}
		if joined := telematics.Join(once, once); !reflect.DeepEqual(once, joined) {
			t.Errorf("snapshot %v, joined with itself %v", once, joined)
		}
	})
}

func FuzzDecodeAnswer(f *testing.F) {
	wiretest.Seed(f, "answer-*.json")
	f.Fuzz(func(t *testing.T, message []byte) {
		own := bytes.Clone(message)
		a, dropped, err := DecodeAnswer(own, received)
		clear(own) // the answer must not refer to it
		if err != nil {
			return
		}
		if len(message) > telematics.MaxMessage {
			t.Errorf("%d bytes were accepted, above the limit", len(message))
		}
		checkTime(t, a.At)
		checkText(t, a.Reason, a.Detail)
		if a.State != telematics.Received && !a.State.IsFinal() {
			t.Errorf("state %s, want received or a final one", a.State)
		}
		if a.Report != nil {
			checkReport(t, *a.Report)
			checkDropped(t, dropped)
			if a.Report.Answers != nil {
				t.Error("the report of an answer has answers")
			}
			sent := withoutRaw(*a.Report)
			a.Report = &sent
		}
		encoded := EncodeAnswer(a)
		if len(encoded) > telematics.MaxMessage {
			return
		}
		again, dropped, err := DecodeAnswer(encoded, received)
		if again.Report != nil {
			*again.Report = withoutRaw(*again.Report)
		}
		if err != nil || len(dropped) != 0 || !reflect.DeepEqual(again, a) {
			t.Errorf("%s is decoded as\n%+v\nwant\n%+v\ndropped %v, %v", encoded, again, a, dropped, err)
		}
	})
}

func FuzzDecodePresence(f *testing.F) {
	wiretest.Seed(f, "presence-*.json")
	f.Fuzz(func(t *testing.T, message []byte) {
		p, err := DecodePresence(message, received)
		if err != nil {
			return
		}
		if len(message) > telematics.MaxMessage {
			t.Errorf("%d bytes were accepted, above the limit", len(message))
		}
		checkText(t, p.Session, p.Firmware)
		if !p.At.IsZero() { // given, and plausible
			checkTime(t, p.At)
		}
		checkText(t, p.Keys...)
		if len(p.Keys) > telematics.MaxKeys {
			t.Errorf("%d keys were accepted, above the limit", len(p.Keys))
		}
		if len(p.Actions) > len(everyAction) {
			t.Errorf("%d capabilities were accepted, more than exist", len(p.Actions))
		}
		again, err := DecodePresence(EncodePresence(p), received)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("decoded again as %+v, %v; want %+v", again, err, p)
		}
		for _, retained := range []bool{false, true} {
			if c, counted := (telematics.Contact{}).Apply(p, received, retained); !counted || c.LastSeen.After(received) {
				t.Errorf("counted %t, last seen %v; want it counted, not seen in the future", counted, c.LastSeen)
			}
		}
	})
}

func FuzzParseTopic(f *testing.F) {
	for _, c := range channels {
		f.Add(c.Topic(goldenUnit))
		f.Add(c.Filter())
		f.Add(telematics.SharedFilter("g", c.Filter()))
	}
	f.Fuzz(func(t *testing.T, topic string) {
		unit, channel, err := ParseTopic(topic)
		if err != nil {
			return
		}
		if channel.Topic(unit) != topic || strings.ContainsAny(string(unit), "+#/\x00 ") {
			t.Errorf("%q was parsed as unit %q, channel %q", topic, unit, channel)
		}
	})
}

// withoutRaw returns a report without the raw fields, which the receiver adds and which are not
// encoded.
func withoutRaw(r telematics.Report) telematics.Report {
	values := map[telematics.Field]any{}
	for field, value := range r.Values {
		if !field.IsRaw() {
			values[field] = value
		}
	}
	r.Values = values
	return r
}

// checkReport checks that a report can be stored: each value is the same after JSON.
func checkReport(t *testing.T, r telematics.Report) {
	t.Helper()
	checkTime(t, r.At)
	for field, value := range r.Values {
		text, err := json.Marshal(value)
		require.NoError(t, err, "%s", field)
		if strings.Contains(string(text), `\u0000`) && !strings.Contains(string(text), `\\u0000`) {
			t.Errorf("%s: the value has a NUL: %s", field, text)
		}
		if again, err := telematics.ParseValue(field, text); err != nil || !reflect.DeepEqual(again, value) {
			t.Errorf("%s: %s is parsed as %#v, want %#v, %v", field, text, again, value, err)
		}
	}
	_, lat := r.Values[telematics.Latitude]
	_, lng := r.Values[telematics.Longitude]
	if lat != lng {
		t.Error("a position without one of its coordinates")
	}
	for _, a := range r.Answers {
		checkTime(t, a.At)
		checkText(t, a.Reason, a.Detail)
		if !a.State.IsFinal() || a.Report != nil {
			t.Errorf("repeated answer %+v, want a final one without a report", a)
		}
	}
	if len(r.Answers) > maxAnswers {
		t.Errorf("%d answers were accepted, above the limit", len(r.Answers))
	}
}

func checkTime(t *testing.T, at time.Time) {
	t.Helper()
	if !telematics.IsPlausible(at, received) || at.Location() != time.UTC || !at.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("time %v, want a plausible one in UTC and milliseconds", at)
	}
}

func checkText(t *testing.T, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if len(s) > telematics.MaxText || strings.ContainsRune(s, 0) {
			t.Errorf("text %q, want at most the limit, without NUL", s)
		}
	}
}
