from sparkwire.kafka.drawing import picture as picture
from sparkwire.kafka.write.check import check as check
from sparkwire.spark.kafka import write as write
from sparkwire.spark.kafka_cluster import cluster as cluster
