# This script runs before the commands of a page. `serve` runs the README's proxy, with more configuration from standard
# input, and sends the README's two requests. examples.rs replaces two words below, each alone on its line, with
# commands of the README.
trap 'kill $(jobs -p) 2> /dev/null || true; wait' EXIT
ready() { until curl -o /dev/null http://127.0.0.1:3180/readyz 2> /dev/null; do kill -0 "$1"; done; }
configure() {
    CONFIGURATION
    # A TOML file may have a table only once, so an [egress] in more.toml replaces that of the README.
    if grep -qs '^\[egress\]' ~/more.toml; then : > /tmp/robotgate-try.toml; fi
    cat - >> /tmp/robotgate-try.toml << 'END'
[proxy]
listen = "127.0.0.1:3128"
[admin]
listen = "127.0.0.1:3180"
END
}
serve() {
    if [ -n "$proxy" ]; then kill $proxy; wait $proxy || true; fi
    cat > ~/more.toml
    configure
    cat ~/more.toml >> /tmp/robotgate-try.toml
    robotgate run --config /tmp/robotgate-try.toml > /dev/null 2>> ~/proxy.log &
    proxy=$!
    ready $proxy
    for path in '' private/; do
        curl -o /dev/null -x http://127.0.0.1:3128 -A ExampleBot/1.0 http://127.0.0.1:8000/$path
    done
}
(
SITE
) > /dev/null 2>&1 &
until curl -o /dev/null http://127.0.0.1:8000/ 2> /dev/null; do kill -0 $!; done
