//go:build deps

package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/alicebob/miniredis/v2"
	_ "github.com/cenkalti/backoff/v4"
	_ "github.com/eclipse/paho.mqtt.golang"
	_ "github.com/fergusstrange/embedded-postgres"
	_ "github.com/getkin/kin-openapi/openapi3filter"
	_ "github.com/getkin/kin-openapi/routers/gorillamux"
	_ "github.com/getkin/kin-openapi/routers/legacy"
	_ "github.com/google/uuid"
	_ "github.com/jmoiron/sqlx"
	_ "github.com/labstack/echo/v4"
	_ "github.com/labstack/echo/v4/middleware"
	_ "github.com/lestrrat-go/jwx/v3/jwk"
	_ "github.com/lestrrat-go/jwx/v3/jws"
	_ "github.com/lestrrat-go/jwx/v3/jwt"
	_ "github.com/lestrrat-go/httprc/v3"
	_ "github.com/lib/pq"
	_ "github.com/lmittmann/tint"
	_ "github.com/mochi-mqtt/server/v2"
	_ "github.com/pressly/goose/v3"
	_ "github.com/pressly/goose/v3/lock"
	_ "github.com/redis/go-redis/v9"
	_ "github.com/swaggest/swgui/v5emb"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
)
