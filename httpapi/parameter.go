package httpapi

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// vehicleParam returns the vehicle that the path names. Any integer of 64 bits names a
// vehicle: zero and negative ones are just none that exists.
func vehicleParam(c echo.Context) (telematics.VehicleID, error) {
	id, err := contract.ParseInteger(c.Param("vehicle"))
	if err != nil {
		return 0, contract.Invalid("vehicle", "must be an integer")
	}
	return telematics.VehicleID(id), nil
}

// bookingParam returns the booking that the path names. Any integer of 64 bits names one, as of a vehicle.
func bookingParam(c echo.Context) (rental.BookingID, error) {
	id, err := contract.ParseInteger(c.Param("booking"))
	if err != nil {
		return 0, contract.Invalid("booking", "must be an integer")
	}
	return rental.BookingID(id), nil
}

// commandParam returns the command that the path names.
func commandParam(c echo.Context) (telematics.CommandID, error) {
	id, err := contract.ParseUUID(c.Param("id"))
	if err != nil {
		return telematics.NoCommand, contract.Invalid("id", "must be a UUID")
	}
	return id, nil
}

// integerQuery returns an integer of the query, zero where it is absent.
func integerQuery(c echo.Context, name string) (int64, error) {
	text := c.QueryParam(name)
	if text == "" {
		return 0, nil
	}
	n, err := contract.ParseInteger(text)
	if err != nil {
		return 0, contract.Invalid(name, "must be an integer")
	}
	return n, nil
}

// timeQuery returns a time of the query, zero where it is absent.
func timeQuery(c echo.Context, name string) (time.Time, error) {
	text := c.QueryParam(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := contract.ParseTime(text)
	if err != nil {
		return time.Time{}, contract.Invalid(name, "must be a time")
	}
	return t, nil
}

// page is a part of a list that a caller asked for.
type page struct {
	list   string // the name of the list; a cursor fits no other
	limit  int
	before int64
}

type pageMeta struct {
	NextCursor *string `json:"next_cursor"` // null at the end
}

// clientMeta names the agency of the app that asks, and, for a list, where its next page begins.
func clientMeta(call *call, page []pageMeta) any {
	agency := agencyMeta{ID: int64(call.actor.Agency), Code: call.agencyCode}
	if len(page) == 0 {
		return agency
	}
	return struct {
		agencyMeta
		pageMeta
	}{agency, page[0]}
}

type agencyMeta struct {
	ID   int64  `json:"agency_id"`
	Code string `json:"agency_code"`
}

func pageOf(c echo.Context, list string) (page, error) {
	p := page{list: list, limit: defaultLimit}
	limit, err := integerQuery(c, "limit")
	if err != nil {
		return p, err
	}
	if limit > 0 {
		p.limit = int(min(limit, maxLimit))
	}
	if text := c.QueryParam("cursor"); text != "" {
		before, ok := p.parseCursor(text)
		if !ok {
			return p, contract.Invalid("cursor", badCursor)
		}
		p.before = before
	}
	return p, nil
}

const badCursor = "must be the next_cursor of this list; leave it out to start at the newest"

// checkCursor reports a cursor that is not of the list.
func checkCursor(c echo.Context, list string, wrong *contract.FieldErrors) {
	if text := c.QueryParam("cursor"); text != "" {
		if _, ok := (page{list: list}).parseCursor(text); !ok {
			wrong.AddIfValid("cursor", badCursor)
		}
	}
}

// query asks for one more than the page holds: it tells whether there is a next page.
func (p page) query() telematics.Page {
	return telematics.Page{Limit: p.limit + 1, Before: p.before}
}

// cursor is opaque to callers, so that positions can change their meaning.
func (p page) cursor(position int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.list + ":" + strconv.FormatInt(position, 10)))
}

func (p page) parseCursor(text string) (int64, bool) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, false
	}
	position, err := strconv.ParseInt(strings.TrimPrefix(string(plain), p.list+":"), 10, 64)
	return position, err == nil && position > 0 && p.cursor(position) == text
}

// cut returns the items of the page, and where the next one begins.
func cut[T any](p page, items []T, position func(T) int64) ([]T, pageMeta) {
	if len(items) <= p.limit {
		return items, pageMeta{}
	}
	items = items[:p.limit]
	next := p.cursor(position(items[p.limit-1]))
	return items, pageMeta{NextCursor: &next}
}

// bodies returns the JSON of items; never nil, so that an empty list reads as [].
func bodies[T, B any](items []T, body func(T) B) []B {
	list := make([]B, len(items))
	for i, item := range items {
		list[i] = body(item)
	}
	return list
}
