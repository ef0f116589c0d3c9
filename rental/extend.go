package rental

import (
	"fmt"
	"slices"
	"time"
)

// notice is how long before the vehicle's next booking an extension must still be possible.
const notice = 30 * time.Minute

// CanExtend reports whether the client may ask for a later end: the booking is upcoming or active, its time is not over, it was
// extended less than MaxExtensions times, nothing that it costs was refused and is still owed, and the vehicle's next booking
// leaves half an hour more, and the agency's buffer.
func (d Dossier) CanExtend(now time.Time) bool { return d.whyNotExtended(now) == "" }

func (d Dossier) whyNotExtended(now time.Time) string {
	switch {
	case !d.State.IsLive():
		return fmt.Sprintf("The booking is %s; only an upcoming or active one can be extended.", d.State)
	case !now.Before(d.End):
		return "The booking's time is over; it cannot be extended any more."
	case d.Extensions >= MaxExtensions:
		return fmt.Sprintf("The booking was extended %d times already.", d.Extensions)
	case slices.ContainsFunc(d.Charges, Charge.isOwed):
		return "A payment of the booking failed; set another default payment method first."
	case d.taken(d.End.Add(notice)):
		return "The vehicle is booked again too soon after the booking's end."
	}
	return ""
}

// taken reports whether the vehicle's next booking begins sooner after an end than the agency's buffer.
func (d Dossier) taken(end time.Time) bool {
	return !d.Next.IsZero() && d.Next.Before(end.Add(d.Terms.Buffer))
}

// Extend moves the end. The present end changes nothing, and costs nothing. The new price is that of the whole time at the
// booking's own tariff. What it adds to an active booking is charged now, what it adds to an upcoming one when it starts.
func (d Dossier) Extend(now, end time.Time) (Change, error) {
	b, end := d.Booking, instant(end)
	if end.Equal(d.End) && d.State.IsLive() {
		return Change{Booking: b}, nil
	}
	if why := d.whyNotExtended(now); why != "" {
		return Change{}, Forbids(BookingNotExtendable, why)
	}
	if end.Before(d.End) {
		return Change{}, Forbids(BookingNotExtendable, "The new end is before the present one; a booking is not shortened.")
	}
	if d.taken(end) {
		return Change{}, NotAvailable("The vehicle has another booking before that end.")
	}
	if end.Sub(d.Start) > MaxLength {
		return Change{}, Forbids(BookingNotExtendable, fmt.Sprintf("A booking lasts at most %d days.", MaxLength/(24*time.Hour)))
	}
	price, err := d.Price.Over(d.Start, end)
	if err != nil {
		return Change{}, Forbids(BookingNotExtendable, "The booking would cost more than can be charged.")
	}
	b.End, b.Price, b.Extensions = end, price, b.Extensions+1
	c := Change{Booking: b, Details: map[string]any{"end_date": end.Format(time.RFC3339Nano)}}
	if more := price.Rental() - d.Price.Rental(); d.State == Active {
		c.Charges = []Charge{d.charge(ExtensionCharge, more, now)}
	}
	return c, nil
}
