package httpapi

import (
	"strings"

	"motorpool/httpapi/resource"
	"motorpool/rental"
)

// chargeList is the list of GET /admin/charges.
const chargeList = "charges" + byID

// charges answers GET /admin/charges.
func (b bookings) charges(c *call) error {
	p := c.page(chargeList)
	query := rental.ChargeQuery{
		Booking: rental.BookingID(c.queryInteger("booking_id")), From: c.queryTime("from"), To: c.queryTime("to"), Limit: p.limit + 1,
	}
	query.Before, _ = p.parseIDCursor(c.QueryParam("cursor"))
	if states := c.QueryParam("state"); states != "" {
		for state := range strings.SplitSeq(states, ",") {
			query.States = append(query.States, rental.ChargeState(state))
		}
	}
	var found []rental.BookedCharge
	var visible bool
	if query.Agency, visible = c.queryAgency(); visible {
		var err error
		if found, err = b.record.FindCharges(c.ctx(), query); err != nil {
			return err
		}
	}
	listed, meta := cutAt(p, found, func(c rental.BookedCharge) string { return c.ID.String() })
	return c.answerWith(plural(len(listed), "charge"), resource.List(listed, resource.NewBookedCharge), meta)
}
