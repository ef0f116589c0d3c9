package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// offers answers what clients can book.
type offers struct{ *server }

// offerList is the name of the list of free vehicles.
const offerList = "vehicles" + request.ByDistance

func (o offers) find(c *request.Call) error {
	p := c.Page(offerList)
	limit, metres, vehicle := p.QueryByDistance()
	latitude, hasNear := queryNumber(c, "latitude")
	longitude, _ := queryNumber(c, "longitude")
	radius, limited := queryNumber(c, "radius_m")
	if !limited {
		radius = defaultRadius
	}
	found, next, err := o.Offers.FindOffers(c.Ctx(), rental.OfferQuery{
		Agency: c.Actor.Agency, Near: telematics.Position{Latitude: latitude, Longitude: longitude}, HasNear: hasNear,
		Radius:  int64(math.Ceil(radius)),
		Station: telematics.StationID(c.QueryInteger("station_id")), From: c.QueryTime("from"), To: c.QueryTime("to"),
		Category: telematics.Clean(c.QueryParam("category")), Features: listOf[string](telematics.Clean(c.QueryParam("feature"))),
		MinEnergyPercent: int(c.QueryInteger("min_energy_percent")), MinRangeKm: int(c.QueryInteger("min_range_km")),
		After: rental.OfferMark{Metres: metres, Vehicle: telematics.VehicleID(vehicle)}, Limit: limit, Now: c.Now(),
	})
	if err = asFields(err); err != nil {
		return err
	}
	listed, meta := request.CutAt(p, found, func(o rental.Offer) string { return offerPosition(o.Mark()) })
	if meta.NextCursor == nil && next != (rental.OfferMark{}) {
		meta = p.NextAt(offerPosition(next))
	}
	body := make([]resource.Offer, len(listed))
	for i, offer := range listed {
		body[i] = resource.NewOffer(offer, o.areaAt(c, offer))
	}
	// The place is left out: it is where the client is.
	err = o.audit.recordList(
		c, "vehicles", len(body),
		"station_id", "from", "to", "category", "feature", "min_energy_percent", "min_range_km",
	)
	if err != nil {
		return err
	}
	return c.AnswerTagged(request.TagOf(body, meta), request.Plural(len(body), "vehicle"), body, meta)
}

// offerPosition returns the position of an offer in the list.
func offerPosition(m rental.OfferMark) string { return fmt.Sprintf("%d.%d", m.Metres, m.Vehicle) }

// areaAt returns the name of the operating area in which an offered vehicle stands; empty: none, or
// areas cannot be read now, which must not hide the vehicles.
func (o offers) areaAt(c *request.Call, offer rental.Offer) string {
	areas, _, err := o.AreasAt.At(c.Ctx(), c.Actor.Agency, offer.Position)
	if err != nil {
		return ""
	}
	for _, a := range areas {
		if a.Kind == rental.AreaOperating {
			return a.Name
		}
	}
	return ""
}

func (o offers) freeTimes(c *request.Call) error {
	within := rental.Span{From: c.QueryTime("from"), To: c.QueryTime("to")}
	// The past is not free. The answer is the same within a minute, so that it can be cached.
	now := c.Now().Truncate(time.Minute)
	if within.From.Before(now) {
		within.From = now
	}
	if within.To.IsZero() {
		within.To = within.From.Add(defaultAhead)
	}
	if err := within.Check(c.Now(), 0, "from", "to"); err != nil {
		return asFields(err)
	}
	free, err := o.Offers.FreeTimes(c.Ctx(), c.Actor.Agency, c.VehicleID(), within, now)
	if err != nil {
		return err
	}
	free = slices.DeleteFunc(free, func(s rental.Span) bool { return !s.To.After(c.Now()) })
	body := resource.List(free, resource.NewFreeTime)
	return c.AnswerTagged(request.TagOf(body), request.Plural(len(body), "free time"), body)
}

func (o offers) quote(c *request.Call) error {
	ctx, cancel := c.Detached(o.ReadBudget)
	defer cancel()
	entry := c.Entry(rental.QuoteCreate, telematics.VehicleID(c.WholeNumber("vehicle_id")))
	q, err := o.Offers.Quote(ctx, rental.QuoteRequest{
		Agency: c.Actor.Agency, Client: c.Actor.Subject, Vehicle: entry.Vehicle,
		Category: telematics.Clean(c.Text("category")), Station: telematics.StationID(c.WholeNumber("station_id")),
		Start: c.Time("start_date"), End: c.Time("end_date"), Now: entry.At,
	})
	if err = asFields(err); err != nil {
		return o.audit.refused(ctx, entry, err)
	}
	return c.AnswerClient(http.StatusCreated, "The price is valid until "+resource.Timestamp(q.Expires)+".", resource.NewQuote(q))
}

// checkQuote checks what the contract cannot express.
func checkQuote(c *request.Call, wrong *contract.FieldErrors) error {
	const either = "must not be combined with vehicle_id: send that, or category and station_id"
	_, named := c.Values["vehicle_id"]
	for _, name := range []string{"category", "station_id"} {
		if _, sent := c.Values[name]; sent && named {
			wrong.AddIfValid(name, either)
		}
	}
	if _, byCategory := c.Values["category"]; byCategory && !named {
		requireFields(c, wrong, "is required with category", "station_id")
	} else if !named {
		requireFields(c, wrong, "is required, or category and station_id", "vehicle_id")
	}
	return nil
}

// queryNumber returns a number of the query, which the contract has checked; false: it is absent.
func queryNumber(c *request.Call, name string) (float64, bool) {
	n, err := strconv.ParseFloat(c.QueryParam(name), 64)
	return n, err == nil && !math.IsNaN(n)
}

// listOf returns the elements of a list that is separated by commas.
func listOf[T ~string](text string) (list []T) {
	if text != "" {
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, T(part))
		}
	}
	return list
}

// checkOffers checks what the contract cannot express.
func checkOffers(c *request.Call, wrong *contract.FieldErrors) error {
	has := func(name string) bool { return c.QueryParam(name) != "" }
	for _, name := range []string{"latitude", "longitude", "radius_m"} {
		if _, is := queryNumber(c, name); has(name) && !is {
			wrong.AddIfValid(name, "must be a number")
		}
	}
	switch {
	case has("latitude") != has("longitude"):
		missing := "latitude"
		if has(missing) {
			missing = "longitude"
		}
		wrong.AddIfValid(missing, "is required: latitude and longitude belong together")
	case !has("latitude") && !has("station_id"):
		wrong.AddIfValid("latitude", "is required, with longitude: around which place vehicles are wanted; or send station_id")
	}
	return nil
}
