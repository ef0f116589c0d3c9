package request

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// AnswerTagged answers a read that has an entity tag, or 304 if the caller has what it stands for.
// A client also gets its agency and, for a list, the page. Its error is that of Answer.
func (c *Call) AnswerTagged(etag, message string, data any, page ...PageMeta) error {
	SetTag(c, etag)
	switch {
	case HasTag(c, etag):
		return c.NoContent(http.StatusNotModified)
	case c.Actor.Role == telematics.Client:
		return c.AnswerClient(http.StatusOK, message, data, page...)
	}
	return c.Answer(message, data)
}

// TagOf returns the entity tag of content, which JSON can encode. It is weak: the rest of an answer
// differs each time.
func TagOf(content ...any) string {
	sum := fnv.New128a()
	_ = json.NewEncoder(sum).Encode(content) // what cannot be encoded is not answered either
	return `W/` + Quoted(hex.EncodeToString(sum.Sum(nil)))
}

// Quoted returns a strong entity tag.
func Quoted(tag string) string { return `"` + tag + `"` }

// SetTag names the entity tag of an answer, which a cache must revalidate.
func SetTag(c *Call, etag string) {
	c.SetHeader("ETag", etag)
	c.SetHeader(echo.HeaderCacheControl, "no-cache, private")
}

// HasTag reports whether the caller has the answer with an entity tag.
func HasTag(c *Call, etag string) bool {
	for tag := range strings.SplitSeq(c.Request().Header.Get("If-None-Match"), ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}
