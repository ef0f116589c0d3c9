package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// Postgres may return a stored value in many more bytes than it was sent in. What was accepted must
// be readable, and must not spoil rows that are read with it.
func TestSettle_AcceptedReportCanBeReadBack(t *testing.T) {
	for name, oem := range map[string]string{
		"long numbers": `[` + strings.Repeat("1e300,", 299) + `1]`,
		"many commas":  `[` + strings.Repeat("1,", 24_999) + `1]`,
		"escapes":      `"` + strings.Repeat("<", 10_000) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, storetest.NewDatabase(t))
			add := storetest.Vehicles(t, p.DB)
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

func TestClaim_LockedVehicleDelaysNoOther(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := open(t, address)
	q := openWith(t, pg.Config{URL: address, MaxConns: 8})
	add := storetest.Vehicles(t, p.DB)
	locked, _ := add()
	other, _ := add()
	tx := p.Pool.MustBegin()
	defer tx.Rollback() //nolint:errcheck // at the end of the test
	tx.MustExec(`select 1 from vehicles where id = $1 for update`, locked)

	refused := make(chan error, 1)
	go func() {
		_, err := q.Claim(t.Context(), brokertest.NewCommand(locked, telematics.Lock))
		refused <- err
	}()
	storetest.WaitForLock(t, p.DB)
	start := time.Now()
	if _, err := q.Claim(t.Context(), brokertest.NewCommand(other, telematics.Lock)); err != nil || time.Since(start) > storetest.Patience {
		t.Errorf("the claim of another vehicle took %v, error %v", time.Since(start), err)
	}
	if err := <-refused; !unavailable.Is(err) {
		t.Errorf("the locked vehicle's claim: %v, want the error of an unavailable server", err)
	}
}
