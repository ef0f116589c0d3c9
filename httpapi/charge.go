package httpapi

import (
	"net/http"
	"strings"

	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
)

// chargeList is the list of GET /admin/charges.
const chargeList = "charges" + request.ByID

// charges answers GET /admin/charges.
func (b bookings) charges(c *request.Call) error {
	p := c.Page(chargeList)
	query := rental.ChargeQuery{
		Booking: rental.BookingID(c.QueryInteger("booking_id")), Client: c.QueryParam("client"),
		From: c.QueryTime("from"), To: c.QueryTime("to"),
	}
	query.Limit, query.Before = p.QueryByID()
	if states := c.QueryParam("state"); states != "" {
		for state := range strings.SplitSeq(states, ",") {
			query.States = append(query.States, rental.ChargeState(state))
		}
	}
	var found []rental.BookedCharge
	var visible bool
	if query.Agency, visible = c.QueryAgency(); visible {
		var err error
		if found, err = b.record.FindCharges(c.Ctx(), query); err != nil {
			return err
		}
	}
	listed, meta := request.CutAt(p, found, func(c rental.BookedCharge) string { return c.ID.String() })
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "charge"), resource.List(listed, resource.NewBookedCharge), meta)
}
