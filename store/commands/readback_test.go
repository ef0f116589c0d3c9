package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// Postgres may return a stored value in many more bytes than it was sent in. What was accepted
// must be readable, and must not spoil rows that are read with it.
func TestSettle_AcceptedReportCanBeReadBack(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	for name, oem := range map[string]string{
		"long numbers": `[` + strings.Repeat("1e300,", 299) + `1]`,
		"many commas":  `[` + strings.Repeat("1,", 24_999) + `1]`,
		"escapes":      `"` + strings.Repeat("<", 10_000) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			vehicle, unit := add()
			large, small := brokertest.NewCommand(vehicle, telematics.Lock), brokertest.NewCommand(vehicle, telematics.OpenTopCase)
			large.Unit, small.Unit = unit, unit
			for _, c := range []telematics.Command{large, small} {
				if _, err := p.Claim(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			report, dropped, err := v1.DecodeReport([]byte(`{"at":"2026-01-02T10:00:00Z","oem_data":{"a":`+oem+`}}`), time.Now())
			if err != nil || len(dropped) > 0 {
				t.Fatalf("decoding the report: dropped %v, %v", dropped, err)
			}
			for _, s := range []delivery.Settlement{
				{Command: large.ID, Unit: unit, State: telematics.Succeeded, At: time.Now(), Reported: &report},
				{Command: small.ID, Unit: unit, State: telematics.Succeeded, At: time.Now()},
			} {
				if _, ok, err := p.Settle(t.Context(), s); err != nil || !ok {
					t.Errorf("Settle = %v, %v; want it applied", ok, err)
				}
			}
			if c, err := p.Command(t.Context(), large.ID); err != nil || c.Reported == nil || len(c.Reported.Values) == 0 {
				t.Errorf("Command: %v, want it with its report", err)
			}
			if updates, err := p.Updates(t.Context(), []uuid.UUID{large.ID, small.ID}, nil); err != nil || len(updates) != 2 {
				t.Errorf("%d updates, %v; want both commands", len(updates), err)
			}
		})
	}
}
