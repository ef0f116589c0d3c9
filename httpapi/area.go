package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/telematics"
)

// areaHandlers answers with areas of agencies, and changes them.
type areaHandlers struct{ *server }

func (a areaHandlers) list(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	return a.listOf(c, agency)
}

func (a areaHandlers) ofClient(c *request.Call) error { return a.listOf(c, c.Actor.Agency) }

func (a areaHandlers) listOf(c *request.Call, agency telematics.AgencyID) error {
	list, err := a.Areas.List(c.Ctx(), agency, "")
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, area := range list {
		sum.Write(area.Version[:])
	}
	etag := request.Quoted(hex.EncodeToString(sum.Sum(nil)))
	return c.AnswerTagged(etag, request.Plural(len(list), "area"), resource.List(list, resource.NewArea))
}

func (a areaHandlers) get(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	list, err := a.Areas.List(c.Ctx(), agency, c.Param("area"))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return rental.NoSuchArea(agency, c.Param("area"))
	}
	return c.AnswerTagged(request.Quoted(list[0].Version.String()), fmt.Sprintf("The area %s.", list[0].Name), resource.NewArea(list[0]))
}

func (a areaHandlers) put(c *request.Call) error {
	var body struct {
		Kind       rental.AreaKind `json:"kind"`
		Geometry   json.RawMessage `json:"geometry"`
		Properties struct {
			Kind rental.AreaKind `json:"kind"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return contract.Invalid("body", "must be a GeoJSON Feature, or an object with kind and geometry")
	}
	return a.change(c, rental.AreaPut, func(change *areas.Change) error {
		shape, err := areas.ParseShape("geometry", body.Geometry)
		if err != nil {
			return err
		}
		if change.Kind = body.Kind; change.Kind == "" {
			change.Kind = body.Properties.Kind
		}
		if !slices.Contains(rental.AreaKinds, change.Kind) {
			return contract.Invalid("kind", "must be one of operating, no_parking, end_only")
		}
		change.Shape = &shape
		return nil
	})
}

func (a areaHandlers) remove(c *request.Call) error {
	return a.change(c, rental.AreaRemove, func(*areas.Change) error { return nil })
}

// change carries out a change, which ends even if the caller disconnects, and records a refusal.
func (a areaHandlers) change(c *request.Call, activity string, complete func(*areas.Change) error) error {
	ctx, cancel := c.Detached(a.ReadBudget)
	defer cancel()
	change := areas.Change{Area: rental.Area{Name: c.Param("area")}, Version: strings.Trim(c.Request().Header.Get("If-Match"), `"`)}
	change.Entry = c.Entry(activity, 0)
	var now areas.Placed
	var added bool
	var err error
	if change.Agency, err = pathAgency(c); err == nil {
		err = complete(&change)
	}
	if err == nil {
		now, added, err = a.Areas.Put(ctx, change)
	}
	if err = asFields(err); err != nil {
		change.Entry.Agency = cmp.Or(change.Agency, change.Entry.Agency)
		return a.audit.refused(ctx, change.Entry, err)
	}
	time.Sleep(a.AreasWithin)
	if change.Shape == nil {
		return c.Answer(fmt.Sprintf("The area %s is removed.", change.Name), nil)
	}
	c.SetHeader("ETag", request.Quoted(now.Version.String()))
	status, message := http.StatusOK, fmt.Sprintf("The area %s is changed.", change.Name)
	if added {
		status, message = http.StatusCreated, fmt.Sprintf("The area %s is added.", change.Name)
		c.SetHeader(echo.HeaderLocation, c.Request().URL.Path)
	}
	return c.AnswerWith(status, message, resource.NewArea(now), areaMeta{a.warnings(ctx, change)})
}

type areaMeta struct {
	Warnings []string `json:"warnings"`
}

// warnings returns what may be wrong with an area that is valid: it is far from all stations of the
// agency.
func (a areaHandlers) warnings(ctx context.Context, change areas.Change) []string {
	stations, err := a.Agencies.ListStations(ctx, telematics.AgencyQuery{Agency: change.Agency})
	if err != nil || len(stations) == 0 {
		return []string{} // without stations, or without the means to tell, there is no warning
	}
	nearest := math.Inf(1)
	for _, s := range stations {
		nearest = min(nearest, change.Shape.Middle().Metres(telematics.Position{Latitude: s.Latitude, Longitude: s.Longitude}))
	}
	if nearest < farArea {
		return []string{}
	}
	return []string{fmt.Sprintf(
		"The nearest station of the agency is %.0f km away: in GeoJSON a position is [longitude, latitude].", nearest/1000,
	)}
}
