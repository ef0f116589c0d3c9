package transitions

import (
	"context"
	"errors"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// reporting are cars that report their state when they are asked to.
type reporting struct {
	Cars
	report telematics.Report
	asked  *int
}

func (r reporting) Send(context.Context, *delivery.Order) (delivery.Receipt, error) {
	*r.asked++
	return delivery.Receipt{Command: &telematics.Command{Reported: &r.report, Completed: r.report.At}}, nil
}

// city is an agency with one operating area, all of the north.
type city struct{}

func (city) At(_ context.Context, _ telematics.AgencyID, at telematics.Position) (in []rental.Area, ends rental.AreaKind, err error) {
	if at.Latitude > 1 {
		in = []rental.Area{{Name: "city", Kind: rental.AreaOperating}}
	}
	return in, rental.AreaOperating, nil
}

// A position that is old is asked for. One that stays old, or that is not known, is in no area.
func TestCheckReturn_ByAPositionOfLate(t *testing.T) {
	now := time.Now()
	reading := func(value any) telematics.Reading { return telematics.Reading{Value: value, At: now.Add(-time.Second)} }
	for name, test := range map[string]struct {
		latitude, located, after any
		asked                    int
		refused                  bool
	}{
		"new":                     {48.1, now.Add(-time.Minute), nil, 0, false},
		"old, and new when asked": {48.1, now.Add(-time.Hour), now, 1, false},
		"old, and old when asked": {48.1, now.Add(-time.Hour), now.Add(-time.Hour), 1, true},
		"without a time":          {48.1, nil, nil, 0, false},
		"not known":               {nil, nil, nil, 0, true},
		"elsewhere":               {-48.1, now, nil, 0, true},
	} {
		asked := 0
		r := New(Config{Areas: city{}, Cars: reporting{asked: &asked, report: telematics.Report{
			At: now, Values: map[telematics.Field]any{telematics.LocatedAt: test.after},
		}}, Now: func() time.Time { return now }})
		d := rental.BookingDetails{Terms: rental.Terms{Rules: rental.Rules{ReturnTo: rental.ReturnToArea}}}
		twin := telematics.Twin{Contact: telematics.Contact{LastSeen: now}, Snapshot: telematics.Snapshot{
			telematics.Latitude: reading(test.latitude), telematics.Longitude: reading(11.6), telematics.LocatedAt: reading(test.located),
		}}
		_, err := r.checkReturn(t.Context(), rental.TransitionRequest{Kind: rental.EndRental}, d, &twin)
		var refusal *rental.ReturnRefusal
		if errors.As(err, &refusal) != test.refused || asked != test.asked {
			t.Errorf("%s: asked %d times, %v; want %d, refused %v", name, asked, err, test.asked, test.refused)
		}
	}
}

// willing are cars that refuse nothing.
type willing struct{ Cars }

func (willing) Refusal(context.Context, *telematics.Twin, telematics.Action) *telematics.Error {
	return nil
}

// Nothing is charged for a vehicle whose unit has never sent anything: it would not open.
func TestCheckStart_OfAVehicleThatWasNeverSeen(t *testing.T) {
	now := time.Now()
	r := New(Config{Cars: willing{}, Now: func() time.Time { return now }})
	for seen, refused := range map[time.Time]bool{{}: true, now.Add(-time.Hour): false, now: false} {
		twin := telematics.Twin{Contact: telematics.Contact{LastSeen: seen}}
		q := rental.TransitionRequest{Kind: rental.StartRental}
		q.Now = now
		_, err := r.check(t.Context(), q, rental.BookingDetails{}, &twin)
		var refusal *telematics.Error
		if errors.As(err, &refusal) != refused || refused && refusal.Code != telematics.VehicleOffline {
			t.Errorf("seen at %v: %v; want refused %v", seen, err, refused)
		}
	}
}
