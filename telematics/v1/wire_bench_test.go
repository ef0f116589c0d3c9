package v1

import "testing"

// benchAnswers are a unit's first word on a command, its last one, and the last one with what the command has changed.
var benchAnswers = []struct{ name, message string }{
	{"received", `{"command_id":"0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c","status":"received","at":"2026-01-02T10:00:00.300Z"}`},
	{"failed", `{"command_id":"0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c","status":"failed","at":"2026-01-02T10:00:02.310Z",` +
		`"reason":"door_open","detail":"rear left"}`},
	{"reporting", `{"command_id":"0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c","status":"succeeded","at":"2026-01-02T10:00:02.310Z",` +
		`"report":{"at":"2026-01-02T10:00:02.300Z","telemetry":{"is_locked":true,"doors":{"front_left":"closed"}}}}`},
}

func BenchmarkDecodeAnswer(b *testing.B) {
	for _, c := range benchAnswers {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.message)))
			for b.Loop() {
				if _, dropped, err := DecodeAnswer([]byte(c.message), received); err != nil || len(dropped) != 0 {
					b.Fatal(dropped, err)
				}
			}
		})
	}
}
