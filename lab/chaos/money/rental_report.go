package money

import (
	"fmt"
	"io"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/rental"
)

func (r *driving) result(took time.Duration) runner.Result {
	ended := 0
	for _, b := range r.accounts.Rentals {
		if b.State == rental.Completed {
			ended++
		}
	}
	result := runner.Result{Report: CheckRentals(r.accounts), Done: ended}
	result.Summary = func(t io.Writer) { r.summaryOfRentals(t, took) }
	result.Worthless = r.faultless()
	switch unchecked := result.Unchecked(); {
	case result.Worthless != "":
	case ended < r.Rentals/2:
		result.Worthless = fmt.Sprintf("only %d rentals have ended", ended)
	case len(unchecked) > 0:
		result.Worthless = fmt.Sprintf("%q were never checked", unchecked)
	}
	return result
}

func (r *driving) summaryOfRentals(t io.Writer, took time.Duration) {
	fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
	fmt.Fprintf(
		t, "rentals\t%d wanted, %d booked, on %d cars; %d instances\n", r.Rentals, len(r.accounts.Rentals), len(r.cars), r.Instances,
	)
	r.writeTimes(t, took)
	verdict.WriteCounts(t, "booking", "times", verdict.Count(r.accounts.Rentals, func(b RentalRow) rental.BookingState { return b.State }))
	verdict.WriteCounts(t, "transition", "times", verdict.Count(r.accounts.Transitions, func(row TransitionRow) string {
		return fmt.Sprintf("%s %s", row.Kind, row.State)
	}))
	r.writeCharges(t, r.accounts.Charges)
}
