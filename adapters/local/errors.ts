/** A request of the page that cannot be done. The message is one sentence for the person at the page. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: 400 | 403 | 404 | 409 | 413 | 503;

  constructor(status: RequestError["status"], message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.status = status;
  }
}

/** The process is just ending or beginning: the same request will be taken by the next one. */
export class AwayError extends RequestError {
  constructor() {
    super(503, "Palaver is not taking messages just now. Try again in a moment.");
  }
}
