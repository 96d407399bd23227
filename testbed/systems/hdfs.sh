# shellcheck shell=bash
# HDFS: a name node and three data nodes, each in a Java machine of its own; two copies of each block. It has no mount:
# programs reach its URLs, by WebHDFS at the HTTP port of the name node, and by its own protocol.
# shellcheck disable=SC2034
NEEDS="java default-jre-headless
$REPOSITORY/target/hdfs/installed.xml Maven:hadoop-hdfs
curl curl"
# shellcheck disable=SC2034
BOOTSTRAP=testbed-extended
# shellcheck disable=SC2034
PORTS="8020 9870 9861 9862 9863 9871 9872 9873 9881 9882 9883"

version() {
    local file
    file=$(basename "$REPOSITORY"/target/hdfs/lib/hadoop-hdfs-client-*.jar .jar)
    echo "HDFS ${file##*-}"
}

start() {
    local number
    configure name
    logged name-format inside "${JAVA[@]}" -cp "$(class_path name)" \
        org.apache.hadoop.hdfs.server.namenode.NameNode -format -force -nonInteractive
    serve name "${JAVA[@]}" -cp "$(class_path name)" org.apache.hadoop.hdfs.server.namenode.NameNode
    # `harm` counts the servers that hold data.
    rm "$HERE/run/name.server"
    for number in 1 2 3; do
        configure "data-$number"
        restart "data-$number"
    done
    await 120 "three data nodes" has_data_nodes 3
    await 60 "a folder" inside curl --silent --fail --max-time 10 --request PUT \
        "http://$ADDRESS:9870/webhdfs/v1/nilometer?op=MKDIRS&user.name=root"
}

# A small heap and the first compiler only: five of them start on two processors. Java's own modules are opened to WebHDFS.
JAVA=(java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData "-Djava.io.tmpdir=$HERE/data"
    --add-opens java.base/java.lang=ALL-UNNAMED)

class_path() {
    echo "$HERE/etc/$1:$REPOSITORY/target/hdfs/lib/*"
}

# Pairs of a key and a value as Hadoop reads them.
site() {
    echo '<configuration>'
    while [ $# -gt 0 ]; do
        echo "<property><name>$1</name><value>$2</value></property>"
        shift 2
    done
    echo '</configuration>'
}

# The ports of a data node end in its number. Quick heartbeats, so that a lost one is missed in seconds; and who closes a file
# asks again soon whether its last block was reported, and not after 400 ms.
configure() {
    local node=$1 number=${1#data-}
    # The name node reads all keys, and uses none of a data node.
    [ "$node" != name ] || number=0
    # The programs of the servers' pages are not among their packages; the folders have to be there.
    mkdir -p "$HERE/etc/$node/webapps/hdfs" "$HERE/etc/$node/webapps/datanode"
    printf '%s\n' 'log4j.rootLogger=INFO, console' 'log4j.appender.console=org.apache.log4j.ConsoleAppender' \
        'log4j.appender.console.layout=org.apache.log4j.PatternLayout' \
        'log4j.appender.console.layout.ConversionPattern=%d %p %c{1}: %m%n' >"$HERE/etc/$node/log4j.properties"
    site fs.defaultFS "hdfs://$ADDRESS:8020" hadoop.tmp.dir "$HERE/data/$node" >"$HERE/etc/$node/core-site.xml"
    site dfs.namenode.name.dir "file://$HERE/data/name" dfs.namenode.http-address "$ADDRESS:9870" \
        dfs.replication 2 dfs.blocksize 67108864 \
        dfs.namenode.datanode.registration.ip-hostname-check false \
        dfs.client.block.write.locateFollowingBlock.initial.delay.ms 10 \
        dfs.heartbeat.interval 1 dfs.namenode.heartbeat.recheck-interval 2000 dfs.namenode.safemode.extension 0 \
        dfs.datanode.hostname "$ADDRESS" dfs.datanode.data.dir "file://$HERE/data/$node/blocks" \
        dfs.datanode.address "$ADDRESS:986$number" dfs.datanode.http.address "$ADDRESS:987$number" \
        dfs.datanode.ipc.address "$ADDRESS:988$number" >"$HERE/etc/$node/hdfs-site.xml"
}

has_data_nodes() {
    local said
    said=$(inside curl --silent --fail --max-time 5 \
        "http://$ADDRESS:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState") || return 1
    [ "$(sed -n 's/.*"NumLiveDataNodes" *: *\([0-9]*\).*/\1/p' <<<"$said")" -ge "$1" ]
}

restart() {
    serve "$1" "${JAVA[@]}" -cp "$(class_path "$1")" org.apache.hadoop.hdfs.server.datanode.DataNode
}

urls() {
    echo "hdfs hdfs://$ADDRESS:9870/nilometer"
    echo "hdfs-rpc hdfs://$ADDRESS:8020/nilometer"
    echo "webhdfs http://$ADDRESS:9870/webhdfs/v1/nilometer"
}
