package httpapi

import (
	"errors"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/rental"
	"motorpool/telematics"
)

// vehicleParam returns the vehicle that the path names. Any integer of 64 bits names a
// vehicle: zero and negative ones are just none that exists.
func vehicleParam(c echo.Context) (telematics.VehicleID, error) {
	id, err := integer(c.Param("vehicle"))
	if err != nil {
		return 0, invalid("vehicle", "must be an integer")
	}
	return telematics.VehicleID(id), nil
}

// bookingParam returns the booking that the path names. Any integer of 64 bits names one, as of a vehicle.
func bookingParam(c echo.Context) (rental.BookingID, error) {
	id, err := integer(c.Param("booking"))
	if err != nil {
		return 0, invalid("booking", "must be an integer")
	}
	return rental.BookingID(id), nil
}

// commandParam returns the command that the path names.
func commandParam(c echo.Context) (telematics.CommandID, error) {
	id, err := parseUUID(c.Param("id"))
	if err != nil {
		return telematics.NoCommand, invalid("id", "must be a UUID")
	}
	return id, nil
}

// integerQuery returns an integer of the query, zero where it is absent.
func integerQuery(c echo.Context, name string) (int64, error) {
	text := c.QueryParam(name)
	if text == "" {
		return 0, nil
	}
	n, err := integer(text)
	if err != nil {
		return 0, invalid(name, "must be an integer")
	}
	return n, nil
}

// timeQuery returns a time of the query, zero where it is absent.
func timeQuery(c echo.Context, name string) (time.Time, error) {
	text := c.QueryParam(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := parseTime(text)
	if err != nil {
		return time.Time{}, invalid(name, "must be a time")
	}
	return t, nil
}

// parseTime reads a time of RFC 3339 that can be told again: in UTC, its year has four digits.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, err
	}
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}, errYear
	}
	return t, nil
}

var errYear = errors.New("in UTC, the year is not one of 0 to 9999")

func integer(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
