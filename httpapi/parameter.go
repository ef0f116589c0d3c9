package httpapi

import (
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
