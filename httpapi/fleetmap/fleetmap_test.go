package fleetmap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// marker returns a vehicle whose fields differ from those of all others.
func marker(n int) telematics.Marker {
	locked, energy := n%2 == 0, float64(n%100)
	return telematics.Marker{
		ID:    telematics.VehicleID(n + 1),
		Plate: fmt.Sprintf("M-MP %d", n), Brand: "Opel", Model: []string{"Corsa", "Astra \"E\""}[n%2],
		Unit: telematics.Unit(fmt.Sprintf("35%013d", n*7919)), Powertrain: telematics.Powertrains[n%3],
		Agency: telematics.AgencyID(n%10 + 1), Status: telematics.VehicleStatuses[n%5],
		Connectivity: telematics.PresenceStatuses[n%4],
		Position:     &telematics.Position{Latitude: 48 + math.Sin(float64(n))/3, Longitude: 11 + math.Cos(float64(n))/3},
		LocatedAt:    time.Unix(1767348000-int64(n%3600), 0),
		Locked:       &locked, Energy: &energy, LastSeen: time.Unix(1767348000-int64(n%600), 0),
	}
}

func encode(tb testing.TB, vehicles int) (compressed []byte, etag string) {
	tb.Helper()
	e, err := New()
	require.NoError(tb, err)
	for n := range vehicles {
		require.NoError(tb, e.Add(marker(n)))
	}
	etag = e.ETag()
	if compressed, err = e.Close("m", "r", "t"); err != nil {
		tb.Fatal(err)
	}
	return compressed, etag
}

func TestEncoder_WritesOneJSONDocumentOfAnySize(t *testing.T) {
	tags := map[string]bool{}
	for _, vehicles := range []int{0, 1, 2, 10_000} {
		compressed, etag := encode(t, vehicles)
		var text bytes.Buffer
		require.NoError(t, Expand(&text, compressed))
		var body struct {
			Data struct {
				Vehicles [][]any
				Models   []string
			}
			Message string
		}
		if err := json.Unmarshal(text.Bytes(), &body); err != nil || len(body.Data.Vehicles) != vehicles || body.Message != "m" {
			t.Errorf("%d vehicles were encoded as %d rows, %v", vehicles, len(body.Data.Vehicles), err)
		}
		if _, again := encode(t, vehicles); again != etag || tags[etag] {
			t.Errorf("%d vehicles: tag %s, then %s; want one tag that no other content has", vehicles, etag, again)
		}
		tags[etag] = true
		if vehicles > 1 && (len(body.Data.Models) != 2 || body.Data.Models[1] != `Opel Astra "E"` || body.Data.Vehicles[1][13] != 1.0) {
			t.Errorf("models %q, row %v", body.Data.Models, body.Data.Vehicles[1])
		}
		if vehicles > 1000 && len(compressed) > 45*vehicles {
			t.Errorf("%d bytes for %d vehicles, want at most 45 each", len(compressed), vehicles)
		}
	}
}
