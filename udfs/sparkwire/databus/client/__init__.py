"""The Databus client: the events of a stream as the callbacks that a consumer knows, without a relay and without Spark.

    chunks -> buffer -> pages -> dispatcher -> callbacks -> consumers

A *chunk* is one response of a relay. The *buffer* keeps the same events of it as Databus's buffer. A *page* is a sequence of
events as columns. The *dispatcher* is Databus's state machine. The *callbacks* fan out to the registered consumers.

Source: linkedin/databus, `GenericDispatcher`, `RelayDispatcher`, `DispatcherState`, `MultiConsumerCallback`,
`DbusEventBuffer`.
"""
