package money

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/rental"
)

func (r *driving) result(took time.Duration) runner.Result {
	all := r.accounts
	bookings := verdict.Count(all.Rentals, func(b RentalRow) rental.BookingState { return b.State })
	ended, worthless := bookings[rental.Completed], ""
	if ended < r.Rentals/2 {
		worthless = fmt.Sprintf("only %d rentals have ended", ended)
	}
	return r.resultOf(CheckRentals(all), ended, cmp.Or(r.faultless(), worthless), took, all.Charges, func(t io.Writer) {
		fmt.Fprintf(t, "rentals\t%d wanted, %d booked, on %d cars\n", r.Rentals, len(all.Rentals), len(r.cars))
		verdict.WriteCounts(t, "booking", "times", bookings)
		verdict.WriteCounts(t, "transition", "times", verdict.Count(all.Transitions, func(row TransitionRow) string {
			return fmt.Sprintf("%s %s", row.Kind, row.State)
		}))
	})
}
