"""The Databus client: it turns the events of a stream into the callbacks of a consumer, without a relay and without Spark.

    chunks -> buffer -> pages -> dispatcher -> callbacks -> consumers

A *chunk* is one response of a relay. The *buffer* keeps the same events of a chunk as Databus's buffer. A *page* is a sequence of
events as columns. The *dispatcher* is Databus's state machine. The *callbacks* module calls all registered consumers.

Source: linkedin/databus, `GenericDispatcher`, `RelayDispatcher`, `DispatcherState`, `MultiConsumerCallback`,
`DbusEventBuffer`.
"""
