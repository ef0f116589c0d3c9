package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/accept"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/fleetmap"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

func (v vehicles) fleetMap(c *request.Call) error {
	query := telematics.MarkerQuery{Agency: c.QueryAgency()}
	if text := c.QueryParam("bbox"); text != "" {
		box, err := parseBox(text)
		if err != nil {
			return err
		}
		query.Box = &box
	}
	encoder, err := fleetmap.New()
	if err != nil {
		return err
	}
	// All vehicles are read, whatever the box has of them.
	vehicles, err := v.Map.CountVehicles(c.Ctx(), query.Agency, 0)
	if err != nil {
		return err
	}
	if err := v.limits.PassMap(c, vehicles); err != nil {
		return err
	}
	if err := v.Map.Markers(c.Ctx(), query, encoder.Add); err != nil {
		return err
	}
	etag := encoder.ETag()
	identify := func() {
		request.SetTag(c, etag)
		c.SetHeader(echo.HeaderVary, echo.HeaderAcceptEncoding)
	}
	if request.HasTag(c, etag) {
		identify()
		return c.NoContent(http.StatusNotModified)
	}
	if err := v.audit.recordList(c, "vehicles", encoder.Vehicles(), "bbox"); err != nil {
		return err
	}
	body, err := encoder.Close(request.Plural(encoder.Vehicles(), "vehicle"), c.ID.String(), resource.Timestamp(c.Now()))
	if err != nil {
		return err
	}
	identify()
	if accept.Gzip(c.Request().Header) {
		c.SetHeader(echo.HeaderContentEncoding, "gzip")
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
	}
	c.SetHeader(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(http.StatusOK)
	return fleetmap.Expand(c.Response(), body)
}

// parseBox reads west,south,east,north.
func parseBox(text string) (box telematics.Box, err error) {
	parts := strings.Split(text, ",")
	bounds := [...]struct {
		value *float64
		most  float64
	}{{&box.West, 180}, {&box.South, 90}, {&box.East, 180}, {&box.North, 90}}
	valid := len(parts) == len(bounds)
	for i := 0; valid && i < len(bounds); i++ {
		*bounds[i].value, err = strconv.ParseFloat(parts[i], 64)
		valid = err == nil && *bounds[i].value >= -bounds[i].most && *bounds[i].value <= bounds[i].most
	}
	if !valid || box.South > box.North {
		return box, contract.Invalid(
			"bbox", "must be west,south,east,north in degrees, such as 11.3,48.0,11.8,48.3, with south not above north",
		)
	}
	return box, nil
}
