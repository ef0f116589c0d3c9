package v1

import (
	"os"
	"testing"

	"motorpool/internal/require"
	"motorpool/telematics/dialecttest"
)

func TestProtocolV1_KeepsTheContractOfDialects(t *testing.T) {
	golden := func(file string) string {
		b, err := os.ReadFile("../testdata/wire/" + file)
		require.NoError(t, err)
		return string(b)
	}
	dialecttest.Contract(t, Dialect{}, dialecttest.Samples{
		Unit:     "358240051111110",
		Answer:   dialecttest.Line{Topic: "motorpool/v1/358240051111110/ack", Payload: golden("answer-succeeded.json")},
		Report:   dialecttest.Line{Topic: "motorpool/v1/358240051111110/telemetry", Payload: golden("report-full.json")},
		Presence: dialecttest.Line{Topic: "motorpool/v1/358240051111110/presence", Payload: golden("presence-online.json")},
	})
}
